// Package report turns what a contest measured into tables and into figures
// that machines read.
//
// The invariant: nothing is left out for being unflattering. A run that failed,
// a plan that a judge refused and a planner that ran out of time stand in the
// same table as the others, with the words for it.
package report
