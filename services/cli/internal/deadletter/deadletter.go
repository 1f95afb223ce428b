// Package deadletter reads the messages of DLQs and predicts the result of
// sending each one again.
//
// A prediction uses the code that decides in the services: host.OpenEnvelope, the validation of
// message bodies, and the handler of interruption, up to the first call to AWS. State that only the
// cluster has, such as the outbox and the NodeClaims, is read if the caller may read it. Otherwise
// the prediction has a note.
//
// A message reaches a DLQ in one of three ways: a host parks it with a reason, SQS moves it after
// too many receives without a reason, or a rule of EventBridge cannot deliver it. In the last case
// it is the whole event, not the input of the queue.
package deadletter

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Origin is how a message reached a DLQ.
type Origin string

// The origins of a DLQ message.
const (
	// MovedByService marks messages that a host moved, with a reason.
	MovedByService Origin = "moved"
	// Redriven messages were moved by SQS after maxReceiveCount receives.
	Redriven Origin = "redriven"
	// Undelivered messages could not be delivered by a rule of EventBridge.
	Undelivered Origin = "undelivered"
)

// Disposition is the predicted result of sending a message again now.
type Disposition string

// The dispositions.
const (
	// Handle: the service handles the message.
	Handle Disposition = "handle"
	// Noop: the service drops and counts the message, because it has expired or belongs to
	// another cluster.
	Noop Disposition = "noop"
	// Stale: the service handles the message, but lifecycle reverts the effect, because the
	// NodeClaim no longer exists.
	Stale Disposition = "stale"
	// Poison: the message returns to the DLQ at once.
	Poison Disposition = "poison"
	// Truncated: the message cannot be sent again, because only its beginning was kept or it
	// is not text.
	Truncated Disposition = "truncated"
	// Forged: the message claims a type or source that its sender may not send. A replay never
	// sends it.
	Forged Disposition = "forged"
)

// The attributes that EventBridge adds to an event that it could not deliver
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html).
const (
	ruleAttribute    = "RULE_ARN"
	codeAttribute    = "ERROR_CODE"
	messageAttribute = "ERROR_MESSAGE"
)

// Prediction is a disposition with its reason.
type Prediction struct {
	Disposition Disposition `json:"disposition"`
	// Reason is the error that the service would return, or a note.
	Reason string `json:"reason,omitempty"`
}

// DeadMessage is one message of a DLQ, as `joist dead list -o json` prints it.
type DeadMessage struct {
	// ID is the SQS message ID. It changes when the message is sent again.
	ID string `json:"id"`
	// Service is the service of the DLQ.
	Service string `json:"service"`
	Origin  Origin `json:"origin"`
	// Kind and Reason are those of the host's error, or of EventBridge's.
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Type, EventID, Subject and From are those of the envelope, if it can be decoded. An
	// event of AWS has a detail type and no subject.
	Type    string `json:"type,omitempty"`
	EventID string `json:"eventId,omitempty"`
	Subject string `json:"subject,omitempty"`
	From    string `json:"from,omitempty"`
	// DeadSince is when the message reached the DLQ. For a redriven message it
	// is the time when it was first sent, the only time that SQS reports.
	DeadSince time.Time `json:"deadSince"`
	// SentAt and Expires are those of the envelope; nil without one.
	SentAt  *time.Time `json:"sentAt,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Receives is the number of receives from the DLQ; for a redriven message,
	// of all receives.
	Receives int `json:"receives"`
	Bytes    int `json:"bytes"`
	// Predicted is the predicted result of sending it again now.
	Predicted Prediction `json:"predicted"`

	outgoing  queue.Outgoing
	isMovable bool
	body      []byte
}

// Outgoing returns the message to send in a replay: as the service would have received it,
// without the attributes of a DLQ message.
func (l DeadMessage) Outgoing() queue.Outgoing { return l.outgoing }

// IsMovable reports whether SQS can move the message unchanged to its queue.
func (l DeadMessage) IsMovable() bool { return l.isMovable }

// Body returns the message as the service would receive it.
func (l DeadMessage) Body() []byte { return l.body }

// Reader reads messages of the DLQ of one service.
type Reader struct {
	Service string
	Cluster event.Cluster
	// ReadCluster reads the cluster. It is called only if a prediction needs it, and may be
	// called often. It is nil without Kubernetes.
	ReadCluster func() (ClusterState, error)
}

// Read reads one message and predicts its disposition at now. It does not fail: an invalid
// message is predicted as poison.
func (r Reader) Read(m queue.Message, now time.Time) DeadMessage {
	l := DeadMessage{ID: m.ID, Service: r.Service, DeadSince: m.Sent, Receives: m.Receives, Bytes: len(m.Body), isMovable: true, body: m.Body}
	a := m.Attributes
	switch {
	case a[ruleAttribute] != "":
		l.Origin, l.Kind, l.Reason = Undelivered, a[codeAttribute], a[messageAttribute]
	case a[host.MovedAtAttribute] != "":
		l.Origin, l.Kind, l.Reason = MovedByService, a[host.KindAttribute], a[host.ReasonAttribute]
	default:
		l.Origin, l.Reason = Redriven, "SQS moved it to the DLQ; no consumer recorded an error; received "+strconv.Itoa(m.Receives)+" times in total"
	}
	l.Type, l.From = a[queue.TypeAttribute], a[queue.SourceAttribute]
	if a[host.EncodingAttribute] == "base64" {
		l.isMovable = false
		if decoded, err := base64.StdEncoding.DecodeString(string(m.Body)); err == nil {
			l.body, l.Bytes = decoded, len(decoded)
		}
	}
	if whole, err := strconv.Atoi(a[host.BytesAttribute]); err == nil {
		l.isMovable, l.Bytes = false, whole
		l.Predicted = Prediction{Truncated, "only the first " + strconv.Itoa(len(l.body)) + " bytes of " + a[host.BytesAttribute] + " were kept; send it again from its source"}
		return l
	}
	why := describeForgery(l.body)
	r.unwrapEvent(&l)
	r.describeMessage(&l)
	l.outgoing = queue.Outgoing{Source: l.From, Type: l.Type, Body: l.body}
	if !queue.IsSendableText(l.body) || len(l.body) > queue.MaxBody {
		l.Predicted = Prediction{Truncated, "its body is not valid text for SQS or too large; no service of Joist sent it"}
		return l
	}
	if why != "" {
		l.Predicted = Prediction{Forged, why}
		return l
	}
	l.Predicted = r.predictDisposition(l.body, now)
	return l
}

// CompareAge orders messages by DeadSince and then by ID.
func CompareAge(a, b DeadMessage) int {
	return cmp.Or(a.DeadSince.Compare(b.DeadSince), cmp.Compare(a.ID, b.ID))
}
