// Package scenario reads planning problems from JSON, and writes plans as JSON, so that any planner
// can be run on a scenario and any checker can verify its plan.
//
// A scenario has everything that a plan depends on, without a cloud account or a cluster: the
// instance types with their prices, the NodePools, the pending pods, the daemons of each new node,
// and the existing nodes. The output of planning has each node to launch with its pods, and the
// reason for each unplaced pod. The output of consolidation has each command in order, as executed.
// deploy/docs/scenario.md describes all three field by field.
//
// Invariants:
//
//   - Read never panics: any bytes give a scenario or Problems, and sizes and counts are bounded.
//   - All problems of a file are reported together, up to a maximum, each with its path and with
//     what to write instead.
//   - Nothing is ignored silently: unknown fields are reported as notes.
//   - Pods are separate objects, like those of a cluster. Grouping equal pods is part of the
//     planner's work (Problem), so it counts when planners are compared.
package scenario
