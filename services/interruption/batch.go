package interruption

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// pendingEvent is an AWS event whose facts are not published yet.
type pendingEvent struct {
	*host.Delivery
	notice notice.Notice
	lookup owner.Lookup
	// instanceBuffer holds the instance of the notice; nearly all notices have one.
	instanceBuffer [1]string
	// goneAt is the time at which the terminated instance was gone; zero if it is not.
	goneAt time.Time
	// finalErr is the error of the message once its facts are published.
	finalErr error
}

// batchState is the memory of one batch. It is reused because it is large.
type batchState struct {
	events           []pendingEvent
	cached, uncached []*pendingEvent
	lookups          []*owner.Lookup
	// document is the message that is being decoded.
	document notice.Document
	// noticed and gone are the facts that are being encoded.
	noticed event.NodeNoticed
	gone    event.InstanceGone
	// facts are the facts to publish; their bytes are in buffer.
	facts  []queue.Outgoing
	buffer []byte
}

var batchStates = sync.Pool{New: func() any { return &batchState{} }}

// release clears the state and returns it to the pool.
func (b *batchState) release() {
	clear(b.events)
	clear(b.cached)
	clear(b.uncached)
	clear(b.lookups)
	clear(b.facts)
	*b = batchState{
		events: b.events[:0], cached: b.cached[:0], uncached: b.uncached[:0], lookups: b.lookups[:0], facts: b.facts[:0], buffer: b.buffer[:0],
	}
	batchStates.Put(b)
}

// Batch handles messages that were received together, with one call for the owners of their
// instances and one for their facts. It leaves envelopes to Handle. It is a host.BatchHandler.
//
// Facts whose owners are cached are published before EC2 is called, so that a warning about a known
// instance does not wait for EC2.
func (s *Service) Batch(ctx context.Context, batch []host.Delivery) {
	b := batchStates.Get().(*batchState)
	defer b.release()
	now := s.Now()
	b.events = slices.Grow(b.events, len(batch)) // Pointers to the elements must stay valid.
	for i := range batch {
		d := &batch[i]
		b.events = append(b.events, pendingEvent{Delivery: d})
		if d.Err = s.readEvent(&b.events[len(b.events)-1], &b.document, now); d.Err != nil {
			b.events = b.events[:len(b.events)-1]
			continue
		}
		d.Err = host.ErrNotBatched // until its owner is known
	}
	s.splitCached(b)
	s.publishEvents(ctx, b, b.cached, now)
	if len(b.uncached) > 0 && s.findOwners(ctx, b) {
		s.publishEvents(ctx, b, b.uncached, s.Now())
	}
}

// detailField is the log field of a notice's detail.
const detailField = "detail"

// readEvent decodes a message and checks its origin and age. An error is the final error
// of the message.
func (s *Service) readEvent(h *pendingEvent, d *notice.Document, now time.Time) error {
	if err := d.ReadHeader(h.Message.Body); err != nil {
		return err
	}
	if d.IsEnvelope() {
		return host.ErrNotBatched
	}
	sent := h.Message.Sent
	if sent.IsZero() {
		sent = now
	}
	h.LogFields.Type = typeLabels[d.Kind()]
	n := &h.notice
	n.Instances = h.instanceBuffer[:0]
	if err := d.ReadNotice(sent, n); err != nil {
		return err
	}
	h.LogFields.ID, h.LogFields.Subject = n.EventID, "instance/"+n.Instances[0]
	if n.Detail != "" {
		h.LogFields.Add(detailField, n.Detail)
	}
	if err := s.checkOrigin(n); err != nil {
		return err
	}
	if age := now.Sub(n.Noticed); age > eventLifetime(n) {
		return fault.F("handling a notice", fault.Stale, "%s is %s old", n.Kind, age.Round(time.Second))
	}
	h.lookup.IDs, h.lookup.EventTime, h.lookup.CurrentState = n.Instances, n.Noticed, n.State.Gone()
	return nil
}

// splitCached separates events whose owners are cached from the others.
func (s *Service) splitCached(b *batchState) {
	for i := range b.events {
		b.lookups = append(b.lookups, &b.events[i].lookup)
	}
	others := s.ownerFinder().LookUpCached(b.lookups)
	for i := range b.events {
		h := &b.events[i]
		if len(others) > 0 && others[0] == &h.lookup {
			others, b.uncached = others[1:], append(b.uncached, h)
			continue
		}
		b.cached = append(b.cached, h)
	}
}

// findOwners asks EC2 for the uncached owners and reports whether it succeeded.
func (s *Service) findOwners(ctx context.Context, b *batchState) bool {
	b.lookups = b.lookups[:0]
	for _, h := range b.uncached {
		b.lookups = append(b.lookups, &h.lookup)
	}
	err := s.ownerFinder().FetchOwners(ctx, b.lookups)
	if err != nil {
		setErrors(b.uncached, err)
	}
	return err == nil
}

// publishEvents publishes the facts of the events with one call. The events get their final errors
// only after it succeeds.
func (s *Service) publishEvents(ctx context.Context, b *batchState, events []*pendingEvent, now time.Time) {
	b.facts, b.buffer = b.facts[:0], b.buffer[:0]
	encoded := events[:0]
	for _, h := range events {
		hasFacts, err := s.decideEvent(h, now)
		if !hasFacts {
			h.Err = err
			continue
		}
		before := len(b.facts)
		if h.Err = s.encodeFacts(b, h, now); h.Err != nil {
			b.facts = b.facts[:before]
			continue
		}
		h.finalErr, h.Err = err, host.ErrNotBatched // until its facts are published
		encoded = append(encoded, h)
	}
	if err := s.sendFacts(ctx, b.facts); err != nil {
		setErrors(encoded, err)
		return
	}
	for _, h := range encoded {
		s.recordSpans(h, now)
		h.Err = h.finalErr
	}
}

// setErrors sets the error of a shared call on all its events. If one of several events may have
// caused a rejection, each is handled alone instead.
func setErrors(events []*pendingEvent, err error) {
	if len(events) > 1 && fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied) {
		err = host.ErrNotBatched
	}
	for _, h := range events {
		h.Err = err
	}
}
