package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/flight"
	"github.com/joist-autoscaler/joist/services/watcher/internal/hunt"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// batches moves the batch in flight, or starts the next. What could not be seen
// of the last plan's claims is told, and holds up nothing else.
func (s *Service) batches(ctx context.Context, at fence, view collect.View) error {
	return errors.Join(s.move(ctx, at, view), s.tellIgnored(ctx, view.Ignored), at.trouble)
}

func (s *Service) move(ctx context.Context, at fence, view collect.View) error {
	held := at.held
	keys := view.PendingKeys()
	s.observe(view, keys, held.State)
	switch flight.Decide(s.sees(at, len(keys) > 0)) {
	case flight.Repeat:
		return s.emit(ctx, held)
	case flight.Open:
		for _, name := range at.unsure {
			s.doubted[name] = true
		}
		return s.open(ctx, held, view, failureOf(held))
	case flight.GiveUp:
		if len(keys) == 0 {
			return s.close(ctx, held)
		}
		return s.open(ctx, held, view, failureOf(held))
	default:
		return nil
	}
}

// observe tells the window what waits.
func (s *Service) observe(view collect.View, keys []string, state outbox.State) {
	now := s.Now()
	s.until = view.Until
	calm := state == outbox.Idle || state == outbox.Done
	if slices.ContainsFunc(s.window.Observe(keys, calm, now), collect.Leaving) {
		s.window.Rush()
	}
	if s.vanished() || s.roomTaken(view, now) || len(keys) > 0 && view.Offer() != s.offered {
		s.window.Open(now)
	}
}

// sees is what the decision about the batch in flight looks at.
func (s *Service) sees(at fence, waiting bool) flight.View {
	now := s.Now()
	v := flight.View{
		Outbox: at.held.Outbox, Sight: at.sight, InState: now.Sub(s.knownFrom), SinceSent: -1, SinceBatch: -1,
		Due: s.window.Closed(now), Waiting: waiting, Hunting: hunt.Active(hunted(at.held)),
	}
	if at.sight == flight.Unsure {
		v.Unsure = now.Sub(s.caughtUp)
	}
	if s.sentSeq == at.held.Seq && !s.sentAt.IsZero() {
		v.SinceSent = now.Sub(s.sentAt)
	}
	if !s.batchAt.IsZero() {
		v.SinceBatch = now.Sub(s.batchAt)
	}
	return v
}

// open builds the next batch: the body is stored, then the outbox swapped, then
// the message sent. Whoever dies in between leaves an unread object, or a
// message that the next leader sends. failure is how the batch before failed, or "".
func (s *Service) open(ctx context.Context, held outbox.Held, view collect.View, failure hunt.Failure) error {
	if view.Snapshot.Catalogue.IsZero() {
		return fault.F("building a batch", fault.Retry, "no catalogue is published yet").
			WithHint("see whether the catalog service runs and gets its ticks; it publishes within a minute")
	}
	next := held.Outbox
	next.Seq++
	cut, lost := s.divide(&next, view.Pending, failure)
	part, ref, err := s.store(ctx, held.UID(), next, view, cut)
	for errors.Is(err, blob.ErrTooLarge) {
		h, halved := hunt.Halve(huntOf(next), hunt.Classes(view.Pending))
		if !halved {
			return fault.E("building a batch", fault.Retry, err).
				WithHint("the snapshot of the cluster alone is too large: see which namespace has many pods with large affinities, or many labels on nodes")
		}
		next.Hunt, cut = remember(h), hunt.Divide(h, view.Pending)
		part, ref, err = s.store(ctx, held.UID(), next, view, cut)
	}
	if err != nil {
		return err
	}
	if !s.led {
		next.Epoch++
	}
	next.State, next.Batch, next.Plan, next.Claims, next.Refused, next.Since = outbox.Sent, ref, "", nil, nil, s.Now().UTC()
	if held, err = held.Swap(ctx, s.Client, next); err != nil {
		return err
	}
	s.led = true
	s.batchAt = s.Now()
	// Pods whose turn has not come are news to the next window; parked ones are not.
	s.window.Close(slices.Concat(part.PendingKeys(), collect.Keys(cut.Parked)))
	s.offered, s.occupied = view.Offer(), occupied(view.Snapshot.Nodes)
	s.note(held.Outbox)
	s.compose(held, part)
	return errors.Join(s.emit(ctx, held), s.tellParked(ctx, cut), lost)
}

// store writes the document of the next batch, with the classes that the search leaves in
// it, and returns the view that it was made from.
func (s *Service) store(ctx context.Context, uid string, next outbox.Outbox, view collect.View, cut hunt.Cut) (collect.View, event.Ref, error) {
	view.Pending, view.Snapshot.Nodes = cut.Pending, cut.Reserve(view.Snapshot.Nodes)
	view.Ignored = slices.Concat(view.Ignored, cut.Ignored())
	batch := scheduling.Batch{Outbox: uid, Seq: next.Seq, Snapshot: view.Snapshot, Pending: view.Pending, Ignored: view.Ignored}
	if !hunt.Active(huntOf(next)) { // A NodeClaim belongs to no part of the pods.
		batch.Unplanned = view.Unplanned
	}
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), scheduling.BatchKind, batch)
	return view, ref, err
}

// failureOf is how the last batch failed, if it is over; "" where it did not.
// Replacements that are given up answer no batch.
func failureOf(held outbox.Held) hunt.Failure {
	switch {
	case held.State == outbox.Sent:
		return hunt.Unanswered
	case len(held.Refused) > 0, held.State == outbox.Applying && !held.Batch.IsZero():
		return hunt.Uncreated
	default:
		return ""
	}
}

// close ends a batch that was given up while no pod waits any more.
func (s *Service) close(ctx context.Context, held outbox.Held) error {
	next := held.Outbox
	next.Seq++
	next.State, next.Batch, next.Plan, next.Claims, next.Refused, next.Since = outbox.Done, event.Ref{}, "", nil, nil, s.Now().UTC()
	next.Hunt = remember(outbox.Hunt{Parked: hunted(held).Parked})
	_, err := held.Swap(ctx, s.Client, next)
	return err
}

// emit sends the batch in flight. The id is the same each time.
func (s *Service) emit(ctx context.Context, held outbox.Held) error {
	batch, err := s.maker.New(s.Now(), asking(held), nil)
	if err != nil {
		return err
	}
	batch.Traceparent = batch.Root()
	if err := s.publish(ctx, s.Planner, batch); err != nil {
		return fmt.Errorf("sending batch %d: %w", held.Seq, err)
	}
	s.tellBatch(batch, held)
	s.sentSeq, s.sentAt = held.Seq, s.Now()
	return nil
}

func asking(held outbox.Held) event.PodsUnschedulable {
	return event.PodsUnschedulable{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch}
}
