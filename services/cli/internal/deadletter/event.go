package deadletter

import (
	"encoding/json"

	"github.com/joist-autoscaler/joist/shared/event"
)

// wrapped is what of an event of EventBridge is read here.
type wrapped struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Detail     json.RawMessage `json:"detail"`
}

// unwrap takes our own fact out of the event that carried it: the rules of our bus have
// the input path $.detail, and what they could not deliver is the whole event.
// Interruption gets AWS's events whole.
func (r Reader) unwrap(l *Letter) {
	var outer wrapped
	if r.Service == interruptionService || json.Unmarshal(l.body, &outer) != nil || outer.DetailType == "" || len(outer.Detail) == 0 {
		return
	}
	l.body, l.movable = outer.Detail, false
	l.Type, l.From = outer.DetailType, outer.Source
}

// describe says what the message is about, as far as that can be read.
func (r Reader) describe(l *Letter) {
	if e, err := event.Decode(l.body); err == nil {
		l.Type, l.EventID, l.Subject, l.From = string(e.Type), e.ID, e.Subject, e.Source
		l.Said, l.Expires = &e.Time, &e.Expires
		return
	}
	var outer wrapped
	if json.Unmarshal(l.body, &outer) == nil && outer.DetailType != "" {
		l.Type, l.EventID, l.From = outer.DetailType, outer.ID, outer.Source
	}
}
