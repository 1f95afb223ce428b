// Package timeline draws the changes of a cluster during a test: panels over one time
// axis in seconds, with a line at the start of each act.
//
// Invariants: equal input gives equal bytes; all panels share one time axis; and the
// colours, without a background, are readable on light and dark pages.
package timeline
