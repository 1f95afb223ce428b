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

// pendingEvent is an event of AWS on its way from its message to its facts.
type pendingEvent struct {
	*host.Delivery
	notice notice.Notice
	lookup owner.Lookup
	// instanceBuffer is room for the instance of the notice, which is one nearly always.
	instanceBuffer [1]string
	// goneAt is set where the instance is to be called gone, and when it was.
	goneAt time.Time
	// finalErr is its fate once the facts are said.
	finalErr error
}

// batchState is what one batch needs. It is used again, for it is large.
type batchState struct {
	events           []pendingEvent
	cached, uncached []*pendingEvent
	lookups          []*owner.Lookup
	// document is the message that is being read.
	document notice.Document
	// noticed and gone are the facts that are being written.
	noticed event.NodeNoticed
	gone    event.InstanceGone
	// facts are those that are to be sent, with their bytes in room.
	facts  []queue.Outgoing
	buffer []byte
}

var batchStates = sync.Pool{New: func() any { return &batchState{} }}

// release lets another batch use the memory, and keeps nothing of what was in it.
func (b *batchState) release() {
	clear(b.events)
	clear(b.cached)
	clear(b.uncached)
	clear(b.lookups)
	clear(b.facts)
	b.document.Reset()
	*b = batchState{
		events: b.events[:0], cached: b.cached[:0], uncached: b.uncached[:0], lookups: b.lookups[:0], facts: b.facts[:0], buffer: b.buffer[:0],
		document: b.document,
	}
	batchStates.Put(b)
}

// Batch takes messages that were received together: owners are asked for and facts
// are said with one call each. Envelopes are left to Handle. It is a host.Batch.
//
// What needs no question is said before the question is asked, so that a warning of
// a known instance does not wait for EC2.
func (s *Service) Batch(ctx context.Context, batch []host.Delivery) {
	b := batchStates.Get().(*batchState)
	defer b.release()
	now := s.Now()
	b.events = slices.Grow(b.events, len(batch)) // Pointers go into it.
	for i := range batch {
		d := &batch[i]
		b.events = append(b.events, pendingEvent{Delivery: d})
		if d.Err = s.readEvent(&b.events[len(b.events)-1], &b.document, now); d.Err != nil {
			b.events = b.events[:len(b.events)-1]
			continue
		}
		d.Err = host.ErrAlone // until it is known whose it is
	}
	s.splitCached(b)
	s.publishEvents(ctx, b, b.cached, now)
	if len(b.uncached) > 0 && s.findOwners(ctx, b) {
		s.publishEvents(ctx, b, b.uncached, s.Now())
	}
}

// detailField is what the line calls the detail of a notice.
const detailField = "detail"

// readEvent reads a message; with an error its fate is known.
func (s *Service) readEvent(h *pendingEvent, d *notice.Document, now time.Time) error {
	if err := d.ReadHeader(h.Message.Body); err != nil {
		return err
	}
	if d.IsEnvelope() {
		return host.ErrAlone
	}
	taken := h.Message.Sent
	if taken.IsZero() {
		taken = now
	}
	h.Note.Type = typeLabels[d.Kind()]
	n := &h.notice
	n.Instances = h.instanceBuffer[:0]
	if err := d.ReadNotice(taken, n); err != nil {
		return err
	}
	h.Note.ID, h.Note.Subject = n.EventID, "instance/"+n.Instances[0]
	if n.Detail != "" {
		h.Note.Say(detailField, n.Detail)
	}
	if err := s.checkOrigin(n); err != nil {
		return err
	}
	if age := now.Sub(n.Noticed); age > eventLifetime(n) {
		return fault.F("obeying a notice", fault.Stale, "%s is %s old", n.Kind, age.Round(time.Second))
	}
	h.lookup.IDs, h.lookup.EventTime, h.lookup.CurrentState = n.Instances, n.Noticed, n.State.Gone()
	return nil
}

// splitCached parts events of known instances from the others.
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

// findOwners finds the owners, and reports whether it did.
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

// publishEvents says what the events mean, with one call, and only then is their fate what
// follows from them.
func (s *Service) publishEvents(ctx context.Context, b *batchState, heard []*pendingEvent, now time.Time) {
	b.facts, b.buffer = b.facts[:0], b.buffer[:0]
	said := heard[:0]
	for _, h := range heard {
		speaks, err := s.decideEvent(h, now)
		if !speaks {
			h.Err = err
			continue
		}
		before := len(b.facts)
		if h.Err = s.encodeFacts(b, h, now); h.Err != nil {
			b.facts = b.facts[:before]
			continue
		}
		h.finalErr, h.Err = err, host.ErrAlone // until it is said
		said = append(said, h)
	}
	if err := s.sendFacts(ctx, b.facts); err != nil {
		setErrors(said, err)
		return
	}
	for _, h := range said {
		s.recordSpans(h, now)
		h.Err = h.finalErr
	}
}

// setErrors gives all the error of their call, unless it was refused because of one of
// them: then each is tried alone.
func setErrors(heard []*pendingEvent, err error) {
	if len(heard) > 1 && fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied) {
		err = host.ErrAlone
	}
	for _, h := range heard {
		h.Err = err
	}
}
