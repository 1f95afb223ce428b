package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/inflight"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// admittedAnnotation is set by lifecycle on a claim that may be launched. The watcher only waits
// for it.
const admittedAnnotation = launchspec.AdmittedAnnotation

// outboxView is the outbox as read, and the state of the last plan's claims in the cache.
type outboxView struct {
	held       outbox.Stored
	visibility inflight.Visibility
	// unconfirmed names the claims that exist but are not admitted. err reports the claims that
	// could not be read.
	unconfirmed []string
	err         error
}

// viewOutbox reads the outbox and, once the plan is done, checks its claims in the cache.
func (s *Service) viewOutbox(ctx context.Context) (outboxView, error) {
	held, err := s.readOutbox(ctx)
	if err != nil {
		return outboxView{}, err
	}
	s.trackOutbox(held.Outbox)
	at := outboxView{held: held, visibility: inflight.Stale}
	if held.State == outbox.Done {
		s.checkClaims(ctx, &at)
	}
	return at, nil
}

// trackOutbox records since when the outbox has been in its state, by this process's clock.
func (s *Service) trackOutbox(o outbox.Outbox) {
	if o.Seq != s.lastOutbox.Seq || o.State != s.lastOutbox.State || o.Epoch != s.lastOutbox.Epoch || s.lastOutboxSince.IsZero() {
		s.lastOutbox, s.lastOutboxSince, s.caughtUpSince = o, s.Now(), time.Time{}
	}
}

// checkClaims determines which claims of the last plan the cache contains. It asks the API server
// for a claim that the cache does not contain, because the claim may already be deleted. It does
// not wait again for a claim that has timed out once. If the API server is throttling or busy, the
// cache counts as stale, and the claim does not count as missing.
func (s *Service) checkClaims(ctx context.Context, at *outboxView) {
	var failures []error
	for _, name := range at.held.Claims {
		key := cluster.Key{Name: name}
		if object, ok := s.Cache.Get(cluster.NodeClaims, key); ok {
			s.expectedClaims[name] = true
			if object.GetAnnotations()[admittedAnnotation] == "" && object.GetDeletionTimestamp() == nil {
				at.unconfirmed = append(at.unconfirmed, name)
			}
			continue
		}
		if s.expectedClaims[name] {
			continue
		}
		switch _, err := s.Client.Get(ctx, cluster.NodeClaims, key); {
		case err == nil:
			s.caughtUpSince = time.Time{}
			return
		case fault.Is(err, fault.Throttled) || fault.Is(err, fault.Retry):
			s.caughtUpSince, at.err = time.Time{}, fmt.Errorf("reading NodeClaim %s: %w", name, err)
			return
		case !fault.Is(err, fault.Missing):
			failures = append(failures, fmt.Errorf("reading NodeClaim %s: %w", name, err))
			at.unconfirmed = append(at.unconfirmed, name)
		}
	}
	at.err = errors.Join(failures...)
	at.unconfirmed = slices.DeleteFunc(at.unconfirmed, func(name string) bool { return s.timedOutClaims[name] })
	if s.caughtUpSince.IsZero() {
		s.caughtUpSince = s.Now()
	}
	at.visibility = inflight.Complete
	if len(at.unconfirmed) > 0 {
		at.visibility = inflight.Unconfirmed
	}
}

// dropVanishedClaims reports whether an expected claim is deleted or is being deleted. It stops
// tracking that claim, and each claim that is initialized.
func (s *Service) dropVanishedClaims() bool {
	found := false
	for name := range s.expectedClaims {
		object, ok := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
		if !ok || object.GetDeletionTimestamp() != nil {
			delete(s.expectedClaims, name)
			delete(s.timedOutClaims, name)
			found = true
			continue
		}
		if object.(*karpenter.NodeClaim).Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
			delete(s.expectedClaims, name)
		}
	}
	return found
}
