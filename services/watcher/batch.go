package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/watcher/internal/bisect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/inflight"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// handleBatch moves the batch in flight, or starts the next. What could not be seen
// of the last plan's claims is told, and holds up nothing else.
func (s *Service) handleBatch(ctx context.Context, at outboxView, view collect.View) error {
	return errors.Join(s.advanceBatch(ctx, at, view), s.reportIgnored(ctx, view.Ignored), at.err)
}

func (s *Service) advanceBatch(ctx context.Context, at outboxView, view collect.View) error {
	held := at.held
	keys := view.PendingKeys()
	s.updateWindow(view, keys, held.State)
	switch inflight.Decide(s.batchStatus(at, len(keys) > 0)) {
	case inflight.SendAgain:
		return s.sendBatch(ctx, held)
	case inflight.Build:
		for _, name := range at.unconfirmed {
			s.timedOutClaims[name] = true
		}
		return s.buildBatch(ctx, held, view, lastFailure(held))
	case inflight.GiveUp:
		if len(keys) == 0 {
			return s.closeBatch(ctx, held)
		}
		return s.buildBatch(ctx, held, view, lastFailure(held))
	default:
		return nil
	}
}

// updateWindow tells the window what waits.
func (s *Service) updateWindow(view collect.View, keys []string, state outbox.State) {
	now := s.Now()
	s.viewExpires = view.Expires
	calm := state == outbox.Idle || state == outbox.Done
	if slices.ContainsFunc(s.window.Observe(keys, calm, now), collect.IsLeaving) {
		s.window.EndNow()
	}
	if s.dropVanishedClaims() || s.isBufferCapacityUsed(view, now) || len(keys) > 0 && view.SupplyKey() != s.lastSupply {
		s.window.Open(now)
	}
}

// batchStatus is what the decision about the batch in flight looks at.
func (s *Service) batchStatus(at outboxView, waiting bool) inflight.Status {
	now := s.Now()
	v := inflight.Status{
		Outbox: at.held.Outbox, Visibility: at.visibility, InState: now.Sub(s.lastOutboxSince), SinceSent: -1, SinceBatch: -1,
		WindowOver: s.window.IsOver(now), HasPending: waiting, Bisecting: bisect.IsActive(heldBisection(at.held)),
	}
	if at.visibility == inflight.Unconfirmed {
		v.UnconfirmedFor = now.Sub(s.caughtUpSince)
	}
	if s.lastSentSeq == at.held.Seq && !s.lastSentAt.IsZero() {
		v.SinceSent = now.Sub(s.lastSentAt)
	}
	if !s.lastBatchAt.IsZero() {
		v.SinceBatch = now.Sub(s.lastBatchAt)
	}
	return v
}

// buildBatch builds the next batch: the body is stored, then the outbox swapped, then
// the message sent. Whoever dies in between leaves an unread object, or a
// message that the next leader sends. failure is how the batch before failed, or "".
func (s *Service) buildBatch(ctx context.Context, held outbox.Held, view collect.View, failure bisect.Failure) error {
	if view.Snapshot.Catalogue.IsZero() {
		return fault.F("building a batch", fault.Retry, "no catalogue is published yet").
			WithHint("see whether the catalog service runs and gets its ticks; it publishes within a minute")
	}
	next := held.Outbox
	next.Seq++
	cut, lost := s.advanceBisection(&next, view.Pending, failure)
	part, ref, err := s.storeBatch(ctx, held.UID(), next, view, cut)
	for errors.Is(err, blob.ErrTooLarge) {
		h, halved := bisect.SplitTooLarge(bisectionOf(next), bisect.HashClasses(view.Pending))
		if !halved {
			return fault.E("building a batch", fault.Retry, err).
				WithHint("the snapshot of the cluster alone is too large: see which namespace has many pods with large affinities, or many labels on nodes")
		}
		next.Hunt, cut = storedBisection(h), bisect.SelectClasses(h, view.Pending)
		part, ref, err = s.storeBatch(ctx, held.UID(), next, view, cut)
	}
	if err != nil {
		return err
	}
	if !s.wasLeader {
		next.Epoch++
	}
	next.State, next.Batch, next.Plan, next.Claims, next.Refused, next.Since = outbox.Sent, ref, "", nil, nil, s.Now().UTC()
	if held, err = held.Swap(ctx, s.Client, next); err != nil {
		return err
	}
	s.wasLeader = true
	s.lastBatchAt = s.Now()
	// Pods whose turn has not come are news to the next window; parked ones are not.
	s.window.Close(slices.Concat(part.PendingKeys(), collect.PodKeys(cut.Parked)))
	s.lastSupply, s.lastRunningPods = view.SupplyKey(), countRunningPods(view.Snapshot.Nodes)
	s.trackOutbox(held.Outbox)
	s.recordTrace(held, part)
	return errors.Join(s.sendBatch(ctx, held), s.reportParked(ctx, cut), lost)
}

// storeBatch writes the document of the next batch, with the classes that the search leaves in
// it, and returns the view that it was made from.
func (s *Service) storeBatch(ctx context.Context, uid string, next outbox.Outbox, view collect.View, cut bisect.Selection) (collect.View, event.Ref, error) {
	view.Pending, view.Snapshot.Nodes = cut.Pending, cut.ReserveCapacity(view.Snapshot.Nodes)
	view.Ignored = slices.Concat(view.Ignored, cut.IgnoredPods())
	batch := scheduling.Batch{Outbox: uid, Seq: next.Seq, Snapshot: view.Snapshot, Pending: view.Pending, Ignored: view.Ignored}
	if !bisect.IsActive(bisectionOf(next)) { // A NodeClaim belongs to no part of the pods.
		batch.Unplanned = view.Unplanned
	}
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), scheduling.BatchKind, batch)
	return view, ref, err
}

// lastFailure is how the last batch failed, if it is over; "" where it did not.
// Replacements that are given up answer no batch.
func lastFailure(held outbox.Held) bisect.Failure {
	switch {
	case held.State == outbox.Sent:
		return bisect.Unanswered
	case len(held.Refused) > 0, held.State == outbox.Applying && !held.Batch.IsZero():
		return bisect.NotCreated
	default:
		return ""
	}
}

// closeBatch ends a batch that was given up while no pod waits any more.
func (s *Service) closeBatch(ctx context.Context, held outbox.Held) error {
	next := held.Outbox
	next.Seq++
	next.State, next.Batch, next.Plan, next.Claims, next.Refused, next.Since = outbox.Done, event.Ref{}, "", nil, nil, s.Now().UTC()
	next.Hunt = storedBisection(outbox.Hunt{Parked: heldBisection(held).Parked})
	_, err := held.Swap(ctx, s.Client, next)
	return err
}

// sendBatch sends the batch in flight. The id is the same each time.
func (s *Service) sendBatch(ctx context.Context, held outbox.Held) error {
	batch, err := s.maker.New(s.Now(), batchMessage(held), nil)
	if err != nil {
		return err
	}
	batch.Traceparent = batch.Root()
	if err := s.publishMessage(ctx, s.Planner, batch); err != nil {
		return fmt.Errorf("sending batch %d: %w", held.Seq, err)
	}
	s.reportPendingSpan(batch, held)
	s.lastSentSeq, s.lastSentAt = held.Seq, s.Now()
	return nil
}

func batchMessage(held outbox.Held) event.PodsUnschedulable {
	return event.PodsUnschedulable{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch}
}
