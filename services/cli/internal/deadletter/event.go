package deadletter

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// wrappedEvent is what of an event of EventBridge is read here.
type wrappedEvent struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// unwrap takes our own fact out of the event that carried it: the rules of our bus have
// the input path $.detail, and what they could not deliver is the whole event.
// Interruption gets AWS's events whole, and so does the audit log.
func (r Reader) unwrap(l *DeadLetter) {
	var outer wrappedEvent
	if r.Service == interruptionService || r.Service == topology.Audit || json.Unmarshal(l.body, &outer) != nil || outer.DetailType == "" || len(outer.Detail) == 0 {
		return
	}
	l.body, l.movable = outer.Detail, false
	l.Type, l.From = outer.DetailType, outer.Source
}

// describe says what the message is about, as far as that can be read.
func (r Reader) describe(l *DeadLetter) {
	if e, err := r.envelope(l.body); err == nil {
		l.Type, l.EventID, l.Subject, l.From = string(e.Type), e.ID, e.Subject, e.Source
		l.Said, l.Expires = &e.Time, &e.Expires
		return
	}
	var outer wrappedEvent
	if json.Unmarshal(l.body, &outer) == nil && outer.DetailType != "" {
		l.Type, l.EventID, l.From = outer.DetailType, outer.ID, outer.Source
	}
}

// envelope is the fact of ours that a body is, or carries where it is for the audit log.
func (r Reader) envelope(body []byte) (event.Envelope, error) {
	var outer wrappedEvent
	if r.Service == topology.Audit && json.Unmarshal(body, &outer) == nil {
		return event.Decode(outer.Detail)
	}
	return event.Decode(body)
}

// PutAt is when the event that the letter holds whole came to its bus, and so where it
// stands in the bus's archive; zero for any other letter.
func (l DeadLetter) PutAt() time.Time {
	var outer wrappedEvent
	if json.Unmarshal(l.body, &outer) != nil {
		return time.Time{}
	}
	return outer.Time
}
