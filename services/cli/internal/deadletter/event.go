package deadletter

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// wrappedEvent has the fields of an EventBridge event that are read here.
type wrappedEvent struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// unwrapEvent replaces an undelivered event of Joist's bus by its detail, because the rules of
// the bus have the input path $.detail. Interruption and the audit log receive whole events.
func (r Reader) unwrapEvent(l *DeadMessage) {
	var outer wrappedEvent
	if r.Service == interruptionService || r.Service == topology.Audit || json.Unmarshal(l.body, &outer) != nil || outer.DetailType == "" || len(outer.Detail) == 0 {
		return
	}
	l.body, l.isMovable = outer.Detail, false
	l.Type, l.From = outer.DetailType, outer.Source
}

// describeMessage copies the fields of the envelope, or of the AWS event.
func (r Reader) describeMessage(l *DeadMessage) {
	if e, err := r.decodeEnvelope(l.body); err == nil {
		l.Type, l.EventID, l.Subject, l.From = string(e.Type), e.ID, e.Subject, e.Source
		l.SentAt, l.Expires = &e.Time, &e.Expires
		return
	}
	var outer wrappedEvent
	if json.Unmarshal(l.body, &outer) == nil && outer.DetailType != "" {
		l.Type, l.EventID, l.From = outer.DetailType, outer.ID, outer.Source
	}
}

// decodeEnvelope decodes the envelope in a body; for the audit log, in the detail of the
// event.
func (r Reader) decodeEnvelope(body []byte) (event.Envelope, error) {
	var outer wrappedEvent
	if r.Service == topology.Audit && json.Unmarshal(body, &outer) == nil {
		return event.Decode(outer.Detail)
	}
	return event.Decode(body)
}

// PublishedAt returns when the event was published to its bus, which is its time in the bus
// archive; zero if the message is not a whole event.
func (l DeadMessage) PublishedAt() time.Time {
	var outer wrappedEvent
	if json.Unmarshal(l.body, &outer) != nil {
		return time.Time{}
	}
	return outer.Time
}
