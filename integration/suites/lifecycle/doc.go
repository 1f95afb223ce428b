// Package lifecycle runs lifecycle against a real API server with the real controllers: a
// model cannot prove the behaviour of eviction, finalizers, garbage collection and
// conflicts.
package lifecycle
