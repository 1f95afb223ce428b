package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/flight"
	"github.com/joist-autoscaler/joist/services/watcher/internal/hunt"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/outbox"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// admittedAnnotation is how lifecycle marks a claim that may be launched. The
// watcher only waits for it.
const admittedAnnotation = "joist.sh/admitted"

// fence is the outbox as it was read, and what the cache showed then of the
// claims of the last plan.
type fence struct {
	held  outbox.Held
	sight flight.Sight
	// unsure names the claims because of which the sight is no better, and trouble
	// is why some of them could not be looked for.
	unsure  []string
	trouble error
}

func (s *Service) fence(ctx context.Context) (fence, error) {
	held, err := s.outbox(ctx)
	if err != nil {
		return fence{}, err
	}
	s.note(held.Outbox)
	at := fence{held: held, sight: flight.Behind}
	if held.State == outbox.Done {
		s.look(ctx, &at)
	}
	return at, nil
}

// batches moves the batch in flight, or starts the next. What could not be seen
// of the last plan's claims is told, and holds up nothing else.
func (s *Service) batches(ctx context.Context, at fence, view collect.View) error {
	return errors.Join(s.move(ctx, at, view), s.tellIgnored(ctx, view.Ignored), at.trouble)
}

func (s *Service) move(ctx context.Context, at fence, view collect.View) error {
	held := at.held
	keys := view.PendingKeys()
	now := s.Now()
	s.until = view.Until
	calm := held.State == outbox.Idle || held.State == outbox.Done
	if slices.ContainsFunc(s.window.Observe(keys, calm, now), collect.Leaving) {
		s.window.Rush()
	}
	if s.vanished() || s.roomTaken(view, now) || len(keys) > 0 && view.Offer() != s.offered {
		s.window.Open(now)
	}
	v := flight.View{
		Outbox: held.Outbox, Sight: at.sight, InState: now.Sub(s.knownFrom), SinceSent: -1, SinceBatch: -1,
		Due: s.window.Closed(now), Waiting: len(keys) > 0, Hunting: hunt.Active(hunted(held)),
	}
	if at.sight == flight.Unsure {
		v.Unsure = now.Sub(s.caughtUp)
	}
	if s.sentSeq == held.Seq && !s.sentAt.IsZero() {
		v.SinceSent = now.Sub(s.sentAt)
	}
	if !s.batchAt.IsZero() {
		v.SinceBatch = now.Sub(s.batchAt)
	}
	switch flight.Decide(v) {
	case flight.Repeat:
		return s.emit(ctx, held)
	case flight.Open:
		for _, name := range at.unsure {
			s.doubted[name] = true
		}
		return s.open(ctx, held, view, false)
	case flight.GiveUp:
		if len(keys) == 0 {
			return s.close(ctx, held)
		}
		return s.open(ctx, held, view, held.State == outbox.Sent)
	default:
		return nil
	}
}

// note remembers since when the outbox is as it is, on our own clock.
func (s *Service) note(o outbox.Outbox) {
	if o.Seq != s.known.Seq || o.State != s.known.State || o.Epoch != s.known.Epoch || s.knownFrom.IsZero() {
		s.known, s.knownFrom, s.caughtUp = o, s.Now(), time.Time{}
	}
}

// look finds out what the cache shows of the claims of the last plan. One that it
// does not show is asked for live: it may be gone again already. A claim that was
// waited for in vain once is not waited for again (B242).
func (s *Service) look(ctx context.Context, at *fence) {
	var failures []error
	for _, name := range at.held.Claims {
		key := cluster.Key{Name: name}
		if object, ok := s.Cache.Get(cluster.NodeClaims, key); ok {
			s.expected[name] = true
			if object.GetAnnotations()[admittedAnnotation] == "" && object.GetDeletionTimestamp() == nil {
				at.unsure = append(at.unsure, name)
			}
			continue
		}
		if s.expected[name] {
			continue
		}
		switch _, err := s.Client.Get(ctx, cluster.NodeClaims, key); {
		case err == nil:
			s.caughtUp = time.Time{}
			return
		case !fault.Is(err, fault.Missing):
			failures = append(failures, fmt.Errorf("looking for NodeClaim %s: %w", name, err))
			at.unsure = append(at.unsure, name)
		}
	}
	at.trouble = errors.Join(failures...)
	at.unsure = slices.DeleteFunc(at.unsure, func(name string) bool { return s.doubted[name] })
	if s.caughtUp.IsZero() {
		s.caughtUp = s.Now()
	}
	at.sight = flight.Full
	if len(at.unsure) > 0 {
		at.sight = flight.Unsure
	}
}

// vanished reports whether a claim of the last plan is gone or going, and
// forgets it.
func (s *Service) vanished() bool {
	found := false
	for name := range s.expected {
		object, ok := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
		if !ok || object.GetDeletionTimestamp() != nil {
			delete(s.expected, name)
			delete(s.doubted, name)
			found = true
			continue
		}
		if object.(*karpenter.NodeClaim).Status.Conditions.True(karpenter.ConditionTypeInitialized) {
			delete(s.expected, name)
		}
	}
	return found
}

// open builds the next batch: the body is stored, then the outbox swapped, then
// the message sent. Whoever dies in between leaves an unread object, or a
// message that the next leader sends. died says that the batch before got no plan.
func (s *Service) open(ctx context.Context, held outbox.Held, view collect.View, died bool) error {
	if view.Snapshot.Catalogue.IsZero() {
		return fault.F("building a batch", fault.Retry, "no catalogue is published yet").
			WithHint("see whether the catalog service runs and gets its ticks; it publishes within a minute")
	}
	next := held.Outbox
	next.Seq++
	cut, lost := s.divide(&next, view.Pending, died)
	part := view
	part.Pending, part.Snapshot.Nodes = cut.Pending, cut.Reserve(view.Snapshot.Nodes)
	part.Ignored = slices.Concat(view.Ignored, cut.Ignored())
	batch := scheduling.Batch{Outbox: held.UID(), Seq: next.Seq, Snapshot: part.Snapshot, Pending: part.Pending, Ignored: part.Ignored}
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), scheduling.BatchKind, batch)
	if err != nil {
		return err
	}
	if !s.led {
		next.Epoch++
	}
	next.State, next.Batch, next.Plan, next.Claims, next.Since = outbox.Sent, ref, "", nil, s.Now().UTC()
	if held, err = held.Swap(ctx, s.Client, next); err != nil {
		return err
	}
	s.led = true
	s.batchAt = s.Now()
	// Pods whose turn has not come are news to the next window; parked ones are not.
	s.window.Close(slices.Concat(part.PendingKeys(), collect.Keys(cut.Parked)))
	s.offered, s.occupied = view.Offer(), occupied(view.Snapshot.Nodes)
	s.note(held.Outbox)
	return errors.Join(s.emit(ctx, held), s.tellParked(ctx, cut), lost)
}

// close ends a batch that was given up while no pod waits any more.
func (s *Service) close(ctx context.Context, held outbox.Held) error {
	next := held.Outbox
	next.Seq++
	next.State, next.Batch, next.Plan, next.Claims, next.Since = outbox.Done, event.Ref{}, "", nil, s.Now().UTC()
	next.Hunt = remember(outbox.Hunt{Parked: hunted(held).Parked})
	_, err := held.Swap(ctx, s.Client, next)
	return err
}

// emit sends the batch in flight. The id is the same each time.
func (s *Service) emit(ctx context.Context, held outbox.Held) error {
	body := event.PodsUnschedulable{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch}
	if err := s.send(ctx, s.Planner, body); err != nil {
		return fmt.Errorf("sending batch %d: %w", held.Seq, err)
	}
	s.sentSeq, s.sentAt = held.Seq, s.Now()
	return nil
}
