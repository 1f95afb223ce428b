// Package memcloud is a seeded model of EC2, and of the parts of SSM, IAM and
// EKS beside it, that implements all of shared/cloud.
//
// The idea: it is as unkind as EC2 is. It throttles by EC2's token buckets,
// remembers ClientTokens with their first answer, shows what was created late,
// runs out of capacity, addresses and quota, fulfils in part, loses answers
// after the effect, and takes spot instances back. Every kindness is an
// option; every unkindness is drawn from the seed.
//
// Invariants:
//
//   - The same options and the same calls at the same times give the same
//     answers, ids and events. Chance is a hash of the seed and of what is
//     decided, so that one more call elsewhere changes nothing here.
//   - Time is what Now says. There are no goroutines: what became due happens
//     inside the next call, or in Advance, in order of time.
//   - What is true and what Describe shows are two things: Records tells the
//     first (for checkers), the methods of package cloud the second.
//   - Hooks run after the lock is released, so that they may call back.
//
// What EC2 does strictly and package cloud does forgivingly exists twice:
// CreateTemplate and EnsureTemplate, TerminateStrictly and Terminate. Fakes of
// the wire use the strict one. Refusals carry EC2's code, see Code.
package memcloud
