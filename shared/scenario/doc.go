// Package scenario reads planning problems that somebody wrote down as JSON, and
// writes the answer down as JSON, so that any planner can be judged by anybody's
// checker.
//
// A scenario holds everything that a plan depends on and nothing of a cloud
// account or a cluster: the instance types with their prices, the NodePools, the
// pods that wait, the daemons that each new node carries, and the nodes that
// exist. The answer names each node to launch with its pods, and for each pod
// without a place the reason. Asked which of the nodes could go, the answer is each
// command in order, carried out. deploy/docs/scenario.md describes
// all three field by field.
//
// The invariants:
//
//   - Read is total: any bytes give a scenario or Problems, never a panic, and
//     sizes and counts are bounded.
//   - All problems of a file are told together, up to a bound, each with its path
//     and with what to write instead.
//   - Nothing is lost in silence: fields that the format does not have are told
//     as notes.
//   - Pods are separate objects, as a cluster's are. Finding out which of them are
//     equal is the planner's work (Problem), and so it counts when planners are
//     compared.
package scenario
