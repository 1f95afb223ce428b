// Package servicelog has the entries of logs about messages: the lines of the services, and the facts of the
// audit log.
package servicelog

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// HandledLine is the log line of a service about one handled message. Its JSON is that of the services' logs.
type HandledLine struct {
	// Time is when the handling ended.
	Time           time.Time `json:"time"`
	Level          string    `json:"level"`
	Msg            string    `json:"msg"`
	Service        string    `json:"service"`
	EventType      string    `json:"event.type"`
	EventID        string    `json:"event.id"`
	Subject        string    `json:"subject"`
	Cluster        string    `json:"cluster"`
	Correlation    string    `json:"correlation"`
	ReceiveCount   int       `json:"receive_count"`
	AgeMS          int64     `json:"age_ms"`
	Disposition    string    `json:"disposition"`
	Kind           string    `json:"kind"`
	DurationMS     int64     `json:"duration_ms"`
	RetryAfterMS   int64     `json:"retry_after_ms,omitempty"`
	Error          string    `json:"error,omitempty"`
	DispositionErr string    `json:"disposition_error,omitempty"`
}

// AuditFact is an entry of the audit log: EventBridge's event around a message.
type AuditFact struct {
	DetailType string         `json:"detail-type"`
	Source     string         `json:"source"`
	Time       time.Time      `json:"time"`
	Detail     event.Envelope `json:"detail"`
}

// Encode returns a line or fact as one line of JSON.
func Encode(entry any) ([]byte, error) {
	text, err := json.Marshal(entry)
	if err != nil {
		return nil, fault.E("encoding a log line", fault.Bug, err)
	}
	return append(text, '\n'), nil
}

// Begin returns when the handling began.
func (l *HandledLine) Begin() time.Time {
	return l.Time.Add(-time.Duration(l.DurationMS) * time.Millisecond)
}

// Sent returns when the message was sent.
func (l *HandledLine) Sent() time.Time {
	return l.Begin().Add(-time.Duration(l.AgeMS) * time.Millisecond)
}
