// Package memcluster is a seeded in-memory model of the Kubernetes API server. It keeps
// objects by the API's rules (versions, UIDs, generations, finalizers, grace periods,
// budgets) and feeds caches through watches that may lag.
//
// Actors share a Server. Each has its own Client (As), so that the effect log names the
// actor and a fault can be limited to one actor. The Server's own methods are for tests,
// and no fault affects them.
//
// The invariants:
//
//   - The same seed, calls and clock give the same versions, UIDs and faults. The
//     package starts no goroutines, and its methods are safe for concurrent use.
//   - Stored objects are replaced, never changed, and objects are copied on the way in
//     and out.
//   - Time is Options.Now, and caches change only in Advance.
//
// It does not model the validation of most schemas, the admission taint of new nodes
// (memworkload sets it), label changes through a status update, foreground deletion and
// quality-of-service classes.
package memcluster
