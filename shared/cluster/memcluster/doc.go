// Package memcluster is a seeded model of the Kubernetes API server: it keeps
// objects under the API's own rules (versions, UIDs, generations, finalizers,
// grace periods, budgets) and feeds caches by watches that may lag.
//
// A Server is shared; each actor has its own Client (As), so that the effect
// log can say who did what and faults can strike one actor alone. The Server's
// own methods are the test's hand, which no fault strikes.
//
// The invariants:
//
//   - Same seed, same calls, same clock: same versions, UIDs and faults. There
//     are no goroutines; a lock makes it safe to share between some.
//   - What is stored is never changed, only replaced, and what goes in or out
//     is copied: nobody can alias the store.
//   - Time passes only where Options.Now says so, and caches learn only in
//     Advance.
//
// What it leaves out on purpose: validation of schemas, the admission taint of
// new nodes (memworkload sets it), label changes through a status update,
// foreground deletion, and quality-of-service classes.
package memcluster
