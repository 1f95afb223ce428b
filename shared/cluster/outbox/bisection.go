package outbox

import "time"

// Bisection is the state of the watcher's search for pods whose batches get no plan. Only the
// watcher changes it; lifecycle copies it unchanged. It is in the outbox so that a new
// leader continues the search: restarted after each failover, it might never end.
type Bisection struct {
	// Unanswered counts the consecutive whole batches that got no plan.
	Unanswered int `json:"failedBatches,omitempty"`
	// Spans are the spans of classes that remain to be tried, the next one first. While
	// there is one, a batch has only the classes of the first.
	Spans []Span `json:"spans,omitempty"`
	// LastAnswered is set if the previous batch was answered.
	LastAnswered bool `json:"answered,omitempty"`
	// EmptyBatch is set if the batch has no pods, to test whether batches are answered at all.
	EmptyBatch bool `json:"probe,omitempty"`
	// Created is set if NodeClaims were created for a batch of this search.
	Created bool `json:"created,omitempty"`
	// Parked are the classes that are excluded from batches for a time.
	Parked []Parked `json:"excluded,omitempty"`
}

// Span is a range of classes by their hashes, both ends included.
type Span struct {
	From uint64 `json:"from,string"`
	To   uint64 `json:"to,string"`
	// Times is how often the span's only class was excluded before; 0 for other spans.
	Times int `json:"times,omitempty"`
	// Tried is set if the NodeClaims planned for the span's only class could not be
	// created, before any others were.
	Tried bool `json:"tried,omitempty"`
}

// Contains reports whether the class is in the span.
func (s Span) Contains(class uint64) bool { return s.From <= class && class <= s.To }

// Parked is a class that is excluded from batches until a time.
type Parked struct {
	Class uint64    `json:"class,string"`
	Until time.Time `json:"until"`
	// Times is how often in a row it has been excluded, including this time.
	Times int `json:"times,omitempty"`
}
