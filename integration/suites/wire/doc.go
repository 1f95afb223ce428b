// Package wire proves adapters before real servers: what the conformance suite
// of a port says of its model is said here of its adapter too.
package wire
