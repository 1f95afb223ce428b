// Package memcloud is a seeded model of EC2, and of parts of SSM, IAM and EKS, that implements all of shared/cloud.
//
// It models EC2's failures: it throttles with EC2's token buckets, stores ClientTokens with their first answer, shows
// new resources late, runs out of capacity, addresses and quota, fulfils requests partially, loses responses after
// the effect, and interrupts spot instances. Options control the failures, and the seed decides when they happen.
//
// Invariants:
//
//   - The same options and the same calls at the same times give the same
//     results, ids and events. Randomness is a hash of the seed and the
//     decision, so an additional call elsewhere changes nothing.
//   - Time comes from Now. There are no goroutines: changes that are due happen
//     in the next call, or in Advance, in order of time.
//   - The real state and the state that Describe shows differ: Records returns the
//     first (for checkers), the methods of package cloud the second.
//   - Hooks run after the lock is released, so that they may call the model.
//
// Calls that EC2 rejects but package cloud tolerates exist twice: CreateTemplate and EnsureTemplate,
// TerminateStrictly and Terminate. Fake AWS endpoints use the strict one. Refusals have EC2's code, see Code.
package memcloud
