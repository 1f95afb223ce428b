// Package deadletter reads messages of dead-letter queues and says what would become
// of each if it were sent again.
//
// The idea: a letter's future is not guessed. The message goes through the very
// functions that decide in the host (host.OpenEnvelope, the bodies' own checks, interruption's
// own handler), up to the point where a service would begin to act. What depends on the
// world beyond is read there by whoever may: the fence that a plan passes, the NodeClaims
// that wait for a launch. Else it is said as a note.
//
// There are three ways into a dead-letter queue, and a letter says which it took: the
// host parked it with a reason; SQS moved it after too many receives, which tells no
// reason; or a rule of EventBridge could not deliver it, and then it is the whole event
// and not what the queue would have got.
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

// Origin is how a message came into a dead-letter queue.
type Origin string

// The ways into a dead-letter queue.
const (
	// Parked by the host, with a reason.
	Parked Origin = "parked"
	// Redriven by SQS after maxReceiveCount receives.
	Redriven Origin = "redriven"
	// Undelivered by a rule of EventBridge.
	Undelivered Origin = "undelivered"
)

// Disposition is what would become of a message that is sent again now.
type Disposition string

// The verdicts.
const (
	// Handle says that the service would act on it.
	Handle Disposition = "handle"
	// Noop says that the service would drop it and count that: it is expired or of another
	// cluster.
	Noop Disposition = "noop"
	// Stale says that the service would act on it, and that the rest of Joist would undo
	// that: what asked for it is gone.
	Stale Disposition = "stale"
	// Poison says that it would be back in the dead-letter queue at once.
	Poison Disposition = "poison"
	// Cut says that it cannot be sent again, for only its beginning was kept, or it is no text.
	Cut Disposition = "cut"
	// Forged says that the message claims another type or source than its sender may send.
	// A replay never sends it.
	Forged Disposition = "forged"
)

// The attributes that EventBridge gives to what it could not deliver
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html).
const (
	ruleAttribute    = "RULE_ARN"
	codeAttribute    = "ERROR_CODE"
	messageAttribute = "ERROR_MESSAGE"
)

// Prediction is a verdict with its reason.
type Prediction struct {
	Verdict Disposition `json:"verdict"`
	// Why is the error that the service would find, or what else there is to know.
	Why string `json:"why,omitempty"`
}

// DeadLetter is one message of a dead-letter queue, as `joist dead list -o json` prints it.
type DeadLetter struct {
	// ID is SQS's own. It changes when the message is sent again.
	ID string `json:"id"`
	// Service is whose dead-letter queue holds it.
	Service string `json:"service"`
	Origin  Origin `json:"origin"`
	// Kind and Reason are those of the error for which the host parked it, or
	// EventBridge's.
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Type, EventID, Subject and From are those of the envelope, as far as it can be
	// read: an event of AWS has a detail-type, and no subject.
	Type    string `json:"type,omitempty"`
	EventID string `json:"eventId,omitempty"`
	Subject string `json:"subject,omitempty"`
	From    string `json:"from,omitempty"`
	// Dead is when the message came into the queue as far as that is known: of a
	// redriven one SQS tells only when it was first sent.
	Dead time.Time `json:"dead"`
	// Said and Expires are the envelope's; they are left out where there are none.
	Said    *time.Time `json:"said,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Receives counts how often the letter was looked at here, or for a redriven one
	// received at all.
	Receives int `json:"receives"`
	Bytes    int `json:"bytes"`
	// Predicted is what would become of it now.
	Predicted Prediction `json:"predicted"`

	again   queue.Outgoing
	movable bool
	body    []byte
}

// Outgoing is what a replay sends: the message as its service was to get it, without what
// the dead letter says about it.
func (l DeadLetter) Outgoing() queue.Outgoing { return l.again }

// Movable reports whether SQS itself could move the letter, as it lies there, to where
// it was meant to go.
func (l DeadLetter) Movable() bool { return l.movable }

// Body is the message as the service would get it.
func (l DeadLetter) Body() []byte { return l.body }

// Reader reads the letters of one service's dead-letter queue.
type Reader struct {
	Service string
	Cluster event.Cluster
	// World reads the cluster, once for all letters and only when some letter needs it; nil
	// where there is none to be read.
	World func() (ClusterState, error)
}

// Read reads one message and predicts its future at now. It never fails: a message
// that cannot be read is poison, and says so.
func (r Reader) Read(m queue.Message, now time.Time) DeadLetter {
	l := DeadLetter{ID: m.ID, Service: r.Service, Dead: m.Sent, Receives: m.Receives, Bytes: len(m.Body), movable: true, body: m.Body}
	a := m.Attributes
	switch {
	case a[ruleAttribute] != "":
		l.Origin, l.Kind, l.Reason = Undelivered, a[codeAttribute], a[messageAttribute]
	case a[host.MovedAtAttribute] != "":
		l.Origin, l.Kind, l.Reason = Parked, a[host.KindAttribute], a[host.ReasonAttribute]
	default:
		l.Origin, l.Reason = Redriven, "SQS moved it to the DLQ; no consumer recorded an error; received "+strconv.Itoa(m.Receives)+" times in total"
	}
	l.Type, l.From = a[queue.TypeAttribute], a[queue.SourceAttribute]
	if a[host.EncodingAttribute] == "base64" {
		l.movable = false
		if decoded, err := base64.StdEncoding.DecodeString(string(m.Body)); err == nil {
			l.body, l.Bytes = decoded, len(decoded)
		}
	}
	if whole, err := strconv.Atoi(a[host.BytesAttribute]); err == nil {
		l.movable, l.Bytes = false, whole
		l.Predicted = Prediction{Cut, "only the first " + strconv.Itoa(len(l.body)) + " bytes of " + a[host.BytesAttribute] + " were kept; send it again from its source"}
		return l
	}
	why := describeForgery(l.body)
	r.unwrap(&l)
	r.describe(&l)
	l.again = queue.Outgoing{Source: l.From, Type: l.Type, Body: l.body}
	if !queue.IsSendableText(l.body) || len(l.body) > queue.MaxBody {
		l.Predicted = Prediction{Cut, "its body is not valid text for SQS or too large; no service of Joist sent it"}
		return l
	}
	if why != "" {
		l.Predicted = Prediction{Forged, why}
		return l
	}
	l.Predicted = r.predict(l.body, now)
	return l
}

// CompareAge orders letters by when they died, and by their ids.
func CompareAge(a, b DeadLetter) int { return cmp.Or(a.Dead.Compare(b.Dead), cmp.Compare(a.ID, b.ID)) }
