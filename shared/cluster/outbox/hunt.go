package outbox

import "time"

// Hunt is what the watcher remembers of a search for the pods whose batches get
// no plan. Only the watcher changes it, with its own swaps;
// lifecycle carries it along. It is in the outbox because whoever leads next has
// to go on with it: begun anew at each restart it might never end.
type Hunt struct {
	// Dead counts the whole batches in a row that got no plan.
	Dead int `json:"dead,omitempty"`
	// Parts are the spans of classes that are still to be tried, the next one first.
	// While there is one, a batch has the classes of the first alone.
	Parts []Span `json:"parts,omitempty"`
	// Alive says that the batch before was answered.
	Alive bool `json:"alive,omitempty"`
	// Probe says that the batch has no pod at all, to see whether anybody answers.
	Probe bool `json:"probe,omitempty"`
	// Created says that NodeClaims were created for some batch of this search.
	Created bool `json:"created,omitempty"`
	// Parked are the classes that are left out of batches for a while.
	Parked []Parked `json:"parked,omitempty"`
}

// Span is a range of classes by their hashes, both ends included.
type Span struct {
	From uint64 `json:"from,string"`
	To   uint64 `json:"to,string"`
	// Times is how often the one class of the span was left out before; 0 for others.
	Times int `json:"times,omitempty"`
	// Tried says that the NodeClaims planned for the span's one class could not be
	// created, before any others were.
	Tried bool `json:"tried,omitempty"`
}

// Holds reports whether the class is in the span.
func (s Span) Holds(class uint64) bool { return s.From <= class && class <= s.To }

// Parked is a class that is left out of batches until a time.
type Parked struct {
	Class uint64    `json:"class,string"`
	Until time.Time `json:"until"`
	// Times is how often in a row it has been left out, this time included.
	Times int `json:"times,omitempty"`
}
