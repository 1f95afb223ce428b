package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/flight"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// admittedAnnotation is how lifecycle marks a claim that may be launched. The
// watcher only waits for it.
const admittedAnnotation = launchspec.AdmittedAnnotation

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

// note remembers since when the outbox is as it is, on our own clock.
func (s *Service) note(o outbox.Outbox) {
	if o.Seq != s.known.Seq || o.State != s.known.State || o.Epoch != s.known.Epoch || s.knownFrom.IsZero() {
		s.known, s.knownFrom, s.caughtUp = o, s.Now(), time.Time{}
	}
}

// look finds out what the cache shows of the claims of the last plan. One that it
// does not show is asked for live: it may be gone again already. A claim that was
// waited for in vain once is not waited for again. An API server that is too
// busy to answer says nothing about the claim, which is behind then, not broken.
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
		case fault.Is(err, fault.Throttled) || fault.Is(err, fault.Retry):
			s.caughtUp, at.trouble = time.Time{}, fmt.Errorf("looking for NodeClaim %s: %w", name, err)
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
