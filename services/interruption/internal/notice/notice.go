// Package notice decodes AWS's interruption events: which instances will be interrupted, why, and
// by when.
//
// Source and detail-type select a kind, and each kind has a file. Any message becomes a notice or
// an error: fault.Foreign for an EventBridge event that is not relevant, and fault.Poison for a
// message that is not an event or contradicts itself. A field that is not needed is ignored if it
// cannot be decoded. The service's README lists the rules. This package does not know the owners of
// instances.
//
// encoding/json validates a message, but event.SplitJSON finds its fields, because the whole service
// may use 10 µs of CPU for a message (make interrupted). On a busy machine it uses 9.6 µs if all
// messages are about the cluster's instances; with json.Unmarshal into structs it used 14.4 µs.
package notice

import (
	"bytes"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Notice has the content of one event.
type Notice struct {
	Kind event.NoticeKind
	// EventID is AWS's ID of the event, for logs; it may be empty.
	EventID string
	// Instances are the ids of the affected instances: at least one, and unique.
	Instances []string
	// Noticed is the time of the event, at most the time at which the queue received it.
	Noticed time.Time
	// Deadline is absolute; zero if AWS gives no binding one.
	Deadline time.Time
	Detail   string
	// State is set for a state change.
	State cloud.State
	// Account and Region are those of the instances; empty if the event has none.
	Account, Region string
}

// kind is one kind of event.
type kind struct {
	source, detailType string
	notice             event.NoticeKind
}

const ec2 = "aws.ec2"

// kinds are the kinds that are handled. AWS's documentation has two names for the last one.
var kinds = []kind{
	{ec2, "EC2 Instance State-change Notification", event.StateChange},
	{ec2, "EC2 Spot Instance Interruption Warning", event.SpotInterruption},
	{ec2, "EC2 Instance Rebalance Recommendation", event.RebalanceRecommendation},
	{"aws.health", "AWS Health Event", event.ScheduledChange},
	{ec2, "EC2 Capacity Reservation Instance Interruption Warning", event.ReservationInterruption},
	{ec2, "EC2 Interruptible Capacity Reservation Instance Interruption Warning", event.ReservationInterruption},
}

// Kinds returns all kinds of notices.
func Kinds() []event.NoticeKind {
	var all []event.NoticeKind
	for _, k := range kinds {
		if !slices.Contains(all, k.notice) {
			all = append(all, k.notice)
		}
	}
	return all
}

// Document decodes one message at a time. It can be reused.
type Document struct{ header header }

// byteOrderMark may precede UTF-8 text.
var byteOrderMark = []byte("\ufeff")

// ReadHeader decodes the outermost object of a message. The error is fault.Poison if it is
// neither an event nor an envelope.
func (d *Document) ReadHeader(body []byte) error {
	d.header = header{}
	body = bytes.TrimPrefix(body, byteOrderMark)
	if err := event.CheckLimits(body); err != nil {
		return err
	}
	if err := collectFields(d.header[:], headerNames[:], bytes.TrimSpace(body)); err != nil {
		return err
	}
	if d.IsEnvelope() || len(d.header.bytes(headerSource)) > 0 && len(d.header.bytes(headerDetailType)) > 0 {
		return nil
	}
	poison := fault.F("reading an event", fault.Poison, "it lacks the source or the detail-type of an EventBridge event")
	if d.header[headerTopic] != nil {
		_ = poison.WithHint("it came through SNS: let the rule send to the queue directly")
	}
	return poison
}

// IsEnvelope reports whether the message is an envelope of Joist.
func (d *Document) IsEnvelope() bool {
	return d.header[headerSpecVersion] != nil && len(d.header.bytes(headerDetailType)) == 0
}

// Kind returns the kind of the event, or "" if the event is not relevant.
func (d *Document) Kind() event.NoticeKind {
	if k := d.header.kind(); k != nil {
		return k.notice
	}
	return ""
}

// ReadNotice decodes the event into n, which must be empty except for the capacity of its
// Instances. sent is the time at which the queue received the event.
func (d *Document) ReadNotice(sent time.Time, n *Notice) error {
	k := d.header.kind()
	if k == nil {
		return d.header.unknownKindError()
	}
	r := eventReader{header: &d.header, kind: k}
	if err := r.readDetail(); err != nil {
		return err
	}
	r.locate()
	n.Kind, n.EventID, n.Noticed = k.notice, truncateText(r.header.text(headerID)), r.noticedAt(sent)
	n.Account, n.Region = string(r.account), string(r.region)
	if err := r.readKind(n); err != nil {
		return err
	}
	n.Detail = truncateText(n.Detail)
	return nil
}

// readKind decodes the fields of the kind. A table of functions instead of the switch
// would allocate the arguments on the heap for each message.
func (r *eventReader) readKind(n *Notice) error {
	switch r.kind.notice {
	case event.SpotInterruption:
		return readSpotWarning(r, n)
	case event.RebalanceRecommendation:
		return readRebalance(r, n)
	case event.ScheduledChange:
		return readScheduledChange(r, n)
	case event.StateChange:
		return readStateChange(r, n)
	case event.ReservationInterruption:
		return readReservationWarning(r, n)
	default:
		return r.foreignError("no decoder handles it") // Unreachable: kinds has no other kind.
	}
}

// maxAge is the maximum time between an event and the time at which the queue received it.
// EventBridge retries for 24 hours, and SQS keeps a message for 14 days in the queue and 14 days in
// the DLQ, from which it may be redriven.
const maxAge = 31 * 24 * time.Hour

// noticedAt returns the event's own time, or sent if the event's time cannot be decoded, is
// later than sent, or is more than maxAge before it.
func (r *eventReader) noticedAt(sent time.Time) time.Time {
	var at time.Time
	err := at.UnmarshalText(r.header.bytes(headerTime))
	if err != nil || at.After(sent) || sent.Sub(at) > maxAge {
		return sent.UTC()
	}
	return at.UTC()
}
