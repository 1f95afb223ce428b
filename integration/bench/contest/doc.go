// Package contest runs planners on scenarios, each in a process of its own, and
// says what the plans cost and what making them took.
//
// The idea is that planners meet only in files: each reads the same scenario
// and prints the same kind of result, so that none can win by how it is called.
// The invariants: planners take turns, so that a slow minute of the machine
// falls on all of them; what a planner says of its plan is recomputed where it
// can be; and a run that failed is reported as such and never left out.
package contest
