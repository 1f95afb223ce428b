// Package report formats a contest's measurements as tables and as machine-readable
// figures.
//
// Invariant: unfavourable results are not omitted. Failed runs, invalid plans and
// timeouts are in the same table as the others, with their reason.
package report
