package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/bisect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/inflight"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// batchPartMaxAge is how long batches refer to a part without storing it again.
const batchPartMaxAge = 24 * time.Hour

// handleBatch advances the batch in flight or starts the next one. Errors in reading the last
// plan's claims are returned and do not stop it.
func (s *Service) handleBatch(ctx context.Context, at outboxView, view collect.View) error {
	return errors.Join(s.advanceBatch(ctx, at, view), s.reportIgnored(ctx, view.Ignored), at.err)
}

// advanceBatch executes the action that inflight.Decide returns for the current outbox and view.
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

// updateWindow passes the pending keys to the window, and opens the window if a change may allow a
// different plan for them.
func (s *Service) updateWindow(view collect.View, keys []string, state outbox.State) {
	now := s.Now()
	s.viewExpires = view.Expires
	noneInFlight := state == outbox.Idle || state == outbox.Done
	if slices.ContainsFunc(s.window.Observe(keys, noneInFlight, now), collect.IsLeaving) {
		s.window.EndNow()
	}
	if s.dropVanishedClaims() || s.isBufferCapacityUsed(view, now) || len(keys) > 0 && view.SupplyKey() != s.lastSupply {
		s.window.Open(now)
	}
}

// batchStatus returns the inputs of inflight.Decide.
func (s *Service) batchStatus(at outboxView, waiting bool) inflight.BatchState {
	now := s.Now()
	v := inflight.BatchState{
		Outbox: at.held.Outbox, Visibility: at.visibility, InState: now.Sub(s.lastOutboxSince), SinceSent: -1, SinceBatch: -1,
		WindowOver: s.window.IsOver(now), HasPending: waiting, Bisecting: bisect.IsActive(bisectionOf(at.held.Outbox)),
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

// buildBatch stores the next batch, updates the outbox and sends the message, in this order. If the
// process stops in between, it leaves an unused object in S3 or a message that the next leader
// sends. failure is how the previous batch failed, or empty.
func (s *Service) buildBatch(ctx context.Context, held outbox.Stored, view collect.View, failure bisect.Failure) error {
	if view.Snapshot.Catalogue.IsZero() {
		return fault.F("building a batch", fault.Retry, "no catalogue is published yet").
			WithHint("check that the catalog service runs and that its schedule invokes it; it publishes a catalogue within a minute")
	}
	if failure == bisect.Unanswered || !s.wasLeader {
		s.batchParts.Forget() // A part may be missing.
	}
	next := held.Outbox
	next.Seq++
	selection, allFailed := s.advanceBisection(&next, view.Pending, failure)
	part, ref, err := s.storeBatch(ctx, held.UID(), next, view, selection)
	if errors.Is(err, blob.ErrTooLarge) && s.batchParts.ShrinkDocuments() {
		part, ref, err = s.storeBatch(ctx, held.UID(), next, view, selection)
	}
	for errors.Is(err, blob.ErrTooLarge) {
		h, halved := bisect.SplitTooLarge(bisectionOf(next), bisect.HashClasses(view.Pending))
		if !halved {
			return fault.E("building a batch", fault.Retry, err).
				WithHint("the snapshot of the cluster alone is too large, also without its nodes: find the kind with thousands of large objects (DaemonSets, NodePools, CapacityBuffers, devices)")
		}
		next.Bisection, selection = storedBisection(h), bisect.SelectClasses(h, view.Pending)
		part, ref, err = s.storeBatch(ctx, held.UID(), next, view, selection)
	}
	if err != nil {
		return err
	}
	if !s.wasLeader {
		next.Epoch++
	}
	next.State, next.Batch, next.Plan, next.Claims, next.UIDs, next.Refused, next.Since = outbox.Sent, ref, "", nil, nil, nil, s.Now().UTC()
	if held, err = held.Swap(ctx, s.Client, next); err != nil {
		return err
	}
	s.wasLeader = true
	s.lastBatchAt = s.Now()
	// Deferred pods count as new in the next window; parked pods do not.
	s.window.Close(slices.Concat(part.PendingKeys(), collect.PodKeys(selection.Parked)))
	s.lastSupply, s.lastRunningPods = view.SupplyKey(), countRunningPods(view.Snapshot.Nodes)
	s.trackOutbox(held.Outbox)
	s.recordTrace(held, part)
	return errors.Join(s.sendBatch(ctx, held), s.reportParked(ctx, selection), allFailed)
}

// storeBatch stores the next batch with the selected classes, and returns the view that it was
// built from.
func (s *Service) storeBatch(ctx context.Context, uid string, next outbox.Outbox, view collect.View, selection bisect.Selection) (collect.View, event.Ref, error) {
	view.Pending, view.Snapshot.Nodes = selection.Pending, selection.ReserveCapacity(view.Snapshot.Nodes)
	view.Ignored = slices.Concat(view.Ignored, selection.IgnoredPods())
	batch := newBatch(uid, next.Seq, view)
	if bisect.IsActive(bisectionOf(next)) { // Parts of a bisection contain pods only.
		batch.Unplanned = nil
	}
	var err error
	if batch.Snapshot.Nodes, batch.Snapshot.NodeParts, err = s.batchParts.Store(ctx, s.Blobs, s.Now(), batch.Snapshot.Nodes); err != nil {
		return view, event.Ref{}, err
	}
	ref, err := blob.PutNew(ctx, s.Blobs, planning.BatchKind, batch)
	return view, ref, err
}

// lastFailure returns how the last batch failed, or empty if it succeeded. Replacements that time
// out do not count, because they do not belong to a batch.
func lastFailure(held outbox.Stored) bisect.Failure {
	switch {
	case held.State == outbox.Sent:
		return bisect.Unanswered
	case len(held.Refused) > 0, held.State == outbox.Applying && !held.Batch.IsZero():
		return bisect.NotCreated
	default:
		return ""
	}
}

// closeBatch ends a batch that timed out when no pods are pending any more.
func (s *Service) closeBatch(ctx context.Context, held outbox.Stored) error {
	next := held.Outbox
	next.Seq++
	next.State, next.Batch, next.Plan, next.Claims, next.UIDs, next.Refused, next.Since = outbox.Done, event.Ref{}, "", nil, nil, nil, s.Now().UTC()
	next.Bisection = storedBisection(outbox.Bisection{Parked: bisectionOf(held.Outbox).Parked})
	_, err := held.Swap(ctx, s.Client, next)
	return err
}

// sendBatch sends the batch in flight. A batch has the same message ID each time.
func (s *Service) sendBatch(ctx context.Context, held outbox.Stored) error {
	batch, err := s.maker.New(s.Now(), batchMessage(held), nil)
	if err != nil {
		return err
	}
	batch.Traceparent = s.maker.RootTraceparent(batch)
	if err := s.publishMessage(ctx, s.Planner, batch); err != nil {
		return fmt.Errorf("sending batch %d: %w", held.Seq, err)
	}
	s.reportPendingSpan(batch, held)
	s.lastSentSeq, s.lastSentAt = held.Seq, s.Now()
	return nil
}

// batchMessage returns the message of the batch in the outbox.
func batchMessage(held outbox.Stored) event.PodsUnschedulable {
	return event.PodsUnschedulable{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch}
}
