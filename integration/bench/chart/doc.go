// Package chart draws a contest's measurements as one SVG: for each kind of scenario the
// plans' prices relative to the bound, and the CPU time to compute them, by the number of
// pods.
//
// Invariants: equal figures give equal bytes; all panels of a row have one scale, so that
// kinds can be compared; and the colours, without a background, are readable on light and
// dark pages.
package chart
