// Package noticetest is a corpus of what may lie in the queue of AWS's events: the
// true events in their two spellings, and several hundred ways in which such an
// event can be odd or broken, each with the verdict that interruption's README
// gives it.
//
// The verdicts are not computed from the bodies. Each way of being odd is written
// down with what it is meant to lead to, so the corpus and a reader of events can
// be wrong only apart. testdata/corpus.golden lists all of them, so that a change
// of a verdict is seen in review.
//
// The invariants: names are unique and stay; equal arguments give equal bytes; and
// an entry says all that a judge needs: the verdict, the instances that are to be
// acted on, and the deadline.
package noticetest
