// Package timeline draws what changed in a cluster during one test: panels above
// each other over one axis of seconds, with a line where each act of the day
// begins.
//
// The invariants: equal input gives equal bytes; all panels share one time axis;
// and colours, without a background of their own, can be read on a light page and
// on a dark one.
package timeline
