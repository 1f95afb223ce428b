// Package notice reads AWS's own events: what is about to be taken away, from
// which instances, and by when.
//
// The idea is a table: source and detail-type name a kind, and there is one small
// file for each kind of event. Reading is total. Whatever the bytes are, the result is a
// notice, or an error that says what to do with the message: fault.Foreign for
// an event of EventBridge that is of no interest to us, fault.Poison for what is
// no event, or contradicts itself. A field that is not needed to act is never a
// reason to refuse: where it cannot be read it is as if it were not there. The
// rules in full are in the service's README. Whose the instances are is not
// known here.
package notice

import (
	"bytes"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Notice is what one event says.
type Notice struct {
	Kind event.NoticeKind
	// EventID is AWS's own id of the event, for people; it may be empty.
	EventID string
	// Instances are the ids of whom it speaks, at least one, each once.
	Instances []string
	// Noticed is when AWS said so, and never later than the queue took it.
	Noticed time.Time
	// Deadline is absolute; zero when AWS names none that binds.
	Deadline time.Time
	Detail   string
	// State is set for a state change.
	State cloud.State
	// Account and Region are where it happened; empty where it does not say.
	Account, Region string
}

// kind is one kind of event.
type kind struct {
	source, detailType string
	notice             event.NoticeKind
}

const ec2 = "aws.ec2"

// kinds are those that matter. The documentation has two names for
// the last, and both are taken.
var kinds = []kind{
	{ec2, "EC2 Instance State-change Notification", event.StateChange},
	{ec2, "EC2 Spot Instance Interruption Warning", event.SpotInterruption},
	{ec2, "EC2 Instance Rebalance Recommendation", event.RebalanceRecommendation},
	{"aws.health", "AWS Health Event", event.ScheduledChange},
	{ec2, "EC2 Capacity Reservation Instance Interruption Warning", event.ReservationInterruption},
	{ec2, "EC2 Interruptible Capacity Reservation Instance Interruption Warning", event.ReservationInterruption},
}

// Kinds are the kinds of notice that an event can become.
func Kinds() []event.NoticeKind {
	var all []event.NoticeKind
	for _, k := range kinds {
		if !slices.Contains(all, k.notice) {
			all = append(all, k.notice)
		}
	}
	return all
}

// Document is one message of the queue, of which the outermost object has been
// read. Who reads one after the other uses it again.
type Document struct {
	header  header
	strings stringCache
}

// byteOrderMark may stand before a text in UTF-8, and says nothing.
var byteOrderMark = []byte("\ufeff")

// ReadHeader reads the outermost object of a message.
func (d *Document) ReadHeader(body []byte) error {
	d.header = header{}
	body = bytes.TrimPrefix(body, byteOrderMark)
	var room [12]event.Member
	members, err := event.Members(body, room[:0])
	if err != nil {
		return err
	}
	if err := collectFields(d.header[:], headerNames[:], members); err != nil {
		return err
	}
	if d.IsEnvelope() || len(d.header.bytes(headerSource)) > 0 && len(d.header.bytes(headerDetailType)) > 0 {
		return nil
	}
	poison := fault.F("reading an event", fault.Poison, "it has no source or no detail-type, as EventBridge writes them")
	if d.header[headerTopic] != nil {
		_ = poison.WithHint("it came through SNS: let the rule send to the queue itself")
	}
	return poison
}

// IsEnvelope reports whether it is to be read as an envelope of Joist's own.
func (d *Document) IsEnvelope() bool {
	return d.header[headerSpecVersion] != nil && len(d.header.bytes(headerDetailType)) == 0
}

// Kind is what the event is about, or "" if that is of no interest.
func (d *Document) Kind() event.NoticeKind {
	if k := d.header.kind(); k != nil {
		return k.notice
	}
	return ""
}

// Reset forgets the message.
func (d *Document) Reset() { d.header = header{} }

// ReadNotice reads the event into n, which is empty, and whose Instances may have room.
// The queue took it at by: AWS cannot have said it later.
func (d *Document) ReadNotice(by time.Time, n *Notice) error {
	k := d.header.kind()
	if k == nil {
		return d.header.unknownKindError()
	}
	r := eventReader{header: &d.header, strings: &d.strings, kind: k, account: d.header.account(), region: d.header.region()}
	if err := r.readDetail(); err != nil {
		return err
	}
	n.Kind, n.EventID, n.Noticed = k.notice, truncateText(r.header.text(headerID)), r.noticedAt(by)
	n.Account, n.Region = r.strings.intern(r.account), r.strings.intern(r.region)
	if err := r.readKind(n); err != nil {
		return err
	}
	n.Detail = truncateText(n.Detail)
	return nil
}

// readKind fills in what the detail says. It is no table of functions, for what is
// handed to one of those has to lie on the heap, with each message.
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
		return r.foreignError("there is no way to read it") // Not reached: kinds has no other.
	}
}

// maxAge is how long before the queue's clock an event can have been written. EventBridge
// delivers for 24 hours, and SQS keeps a message for 14 days in the queue and as long in
// the dead-letter queue from which it may come back.
const maxAge = 31 * 24 * time.Hour

// noticedAt is when AWS said it: the event's own time, unless that cannot be read, lies in
// the future of the queue's clock, or lies further back than a message can travel.
func (r *eventReader) noticedAt(by time.Time) time.Time {
	var said time.Time
	err := said.UnmarshalText(r.header.bytes(headerTime))
	if err != nil || said.After(by) || by.Sub(said) > maxAge {
		return by.UTC()
	}
	return said.UTC()
}
