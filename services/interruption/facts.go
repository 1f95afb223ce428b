package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// encodeFacts appends the facts of an event to the batch, and sets the correlation ID of
// the event's log line.
func (s *Service) encodeFacts(b *batchState, h *pendingEvent, now time.Time) error {
	for i := range h.lookup.Result.Owned {
		b.noticed = newNodeNoticed(&h.notice, &h.lookup.Result.Owned[i])
		if err := s.appendFact(b, h, now, event.NodeNoticedType, &b.noticed); err != nil {
			return err
		}
	}
	if h.goneAt.IsZero() {
		return nil
	}
	b.gone = event.InstanceGone{InstanceID: h.notice.Instances[0], Shown: h.goneAt}
	return s.appendFact(b, h, now, event.InstanceGoneType, &b.gone)
}

// appendFact encodes one fact into the buffer. If the buffer grows, earlier facts keep
// their bytes in the old one.
func (s *Service) appendFact(b *batchState, h *pendingEvent, now time.Time, typ event.Type, body event.InstanceBody) error {
	before := len(b.buffer)
	out, correlation, err := s.eventMaker().AppendNew(b.buffer, now, body)
	if err != nil {
		return err
	}
	b.buffer = out
	if h.LogFields.Correlation == "" { // A log line has one correlation ID: the one of the first instance.
		h.LogFields.Correlation = correlation
	}
	b.facts = append(b.facts, queue.Outgoing{Source: source, Type: string(typ), Body: out[before:len(out):len(out)]})
	return nil
}

// newNodeNoticed returns the fact about one instance of the cluster.
func newNodeNoticed(n *notice.Notice, i *owner.Instance) event.NodeNoticed {
	return event.NodeNoticed{
		Kind: n.Kind, InstanceID: i.ID, Deadline: n.Deadline, Noticed: n.Noticed, Detail: n.Detail, Offering: i.Offering,
	}
}

// recordSpans records a span for each fact of an event, from the event's time until the fact is
// published. AWS sends no trace context, so the span begins the trace or joins the trace of the
// instance. A duplicate event has the same span.
func (s *Service) recordSpans(h *pendingEvent, now time.Time) {
	if s.Span == nil {
		return
	}
	for i := range h.lookup.Result.Owned {
		s.recordSpan(h, "notice "+string(h.notice.Kind), newNodeNoticed(&h.notice, &h.lookup.Result.Owned[i]), now)
	}
	if !h.goneAt.IsZero() {
		s.recordSpan(h, "notice of the end", event.InstanceGone{InstanceID: h.notice.Instances[0], Shown: h.goneAt}, now)
	}
}

func (s *Service) recordSpan(h *pendingEvent, name string, body event.Body, now time.Time) {
	head := s.eventMaker().NewHead(now, body)
	h.Traceparents = append(h.Traceparents, head.Traceparent)
	s.Span(host.Span{Name: name, Envelope: head, IsRoot: true, Start: h.notice.Noticed, End: now, Fields: []any{"aws_event", h.notice.EventID}})
}
