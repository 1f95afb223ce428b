// Package lifecycle runs lifecycle before a real API server, with the real controllers
// beside it: what eviction, finalizers, garbage collection and conflicts do there,
// no model can prove.
package lifecycle
