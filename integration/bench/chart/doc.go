// Package chart draws what a contest measured as one SVG: for each kind of
// scenario how far the plans are above the bound, and the CPU that making them
// took, by the number of pods.
//
// The invariants: equal figures give equal bytes; all panels of a row have one
// scale, so that kinds can be compared; and colours, without a background of
// their own, can be read on a light page and on a dark one.
package chart
