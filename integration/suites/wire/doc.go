// Package wire tests adapters against real servers, with the same conformance suites that
// the in-memory models pass.
package wire
