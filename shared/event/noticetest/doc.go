// Package noticetest is a corpus of messages for the queue of AWS's events: the genuine events in both forms, and
// several hundred malformed or unusual variants, each with the disposition from interruption's README.
//
// The dispositions are not computed from the bodies. Each variant is written down with its expected result, so a bug
// in a reader of events does not repeat itself here. testdata/corpus.golden lists all entries, so that a changed
// disposition shows up in review.
//
// The invariants: names are unique and stable; equal arguments give equal bytes; and an entry has all that a test
// needs: the disposition, the affected instances and the deadline.
package noticetest
