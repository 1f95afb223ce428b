package trace

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Line is the log line of a service about one handled message. Its JSON is that of the services' logs.
type Line struct {
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

// Fact is an entry of the audit log: EventBridge's event around a message.
type Fact struct {
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
