// Package contest runs planners on scenarios, each in its own process, and measures the
// prices of the plans and the effort to compute them.
//
// Planners only share files: each reads the same scenario and prints the same kind of
// result, so the way of calling gives none an advantage. Invariants: planners run
// alternately, so that a slow minute of the machine affects all of them; a planner's
// figures on its plan are recomputed where possible; and failed runs are reported, never
// omitted.
package contest
