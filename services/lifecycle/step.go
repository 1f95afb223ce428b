package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Pace is how often Step looks when nothing changes: the finest of the times
// that it keeps (eviction backoff, drain deadlines).
const Pace = time.Second

// part is one of the things that a look keeps true.
type part func(ctx context.Context, w world) error

// Step looks at everything once and does what is due. What fails holds up
// nothing but itself. Taints, deadlines and terminations come first, and
// the removal of pods, which may take long, last.
func (s *Service) Step(ctx context.Context) error {
	leads, err := s.Leads(ctx)
	if err == nil && !leads {
		s.retire()
	}
	if s.looks = err == nil && leads && s.Cache.Synced(); !s.looks {
		return err
	}
	return s.election.Act(ctx, s.act)
}

// act is a Step of the replica that leads.
func (s *Service) act(ctx context.Context) error {
	s.looked = s.Now()
	w := s.look(ctx)
	if w.whole = s.looked.Sub(s.whole) >= s.Rest; w.whole {
		s.whole = s.looked
	}
	held, err := s.fence(ctx, w.claims)
	failures, before := []error{err}, s.seen
	urgent, drains := s.decide(held, w)
	s.tally(before, w)
	failures = append(append(failures, s.unread...), s.do.All(ctx, urgent)...)
	s.unread = nil
	parts := []part{s.launches(held), s.sagas}
	if w.whole {
		parts = append(parts, s.nodeClasses, s.nodePools, s.drifts, s.repairs, s.gates, s.statics, s.capacityBuffers)
	}
	for _, p := range parts {
		failures = append(failures, p(ctx, w))
	}
	orphanDrains, err := s.releaseOrphanNodes(ctx, w)
	failures = append(failures, err, s.drains(ctx, append(drains, orphanDrains...)))
	s.forget(w.claims)
	return worth(failures)
}

// Looked reports whether the last Step looked at the cluster: who does not lead, or whose
// cache is not synced, does not.
func (s *Service) Looked() bool { return s.looks }

// decide looks at every claim, or at those that something happened to. What
// removes pods is apart from the rest. Each
// look begins at another claim, so that one that is slow is not always before
// the same others.
func (s *Service) decide(held *outbox.Held, w world) (urgent, drains []effect.Job) {
	s.turn++
	before := s.seen
	s.seen = make(map[types.UID]sight, len(w.claims))
	for i := range w.claims {
		c := w.claims[(i+s.turn)%len(w.claims)]
		now := sight{c, w.node(c)}
		s.seen[c.UID] = now
		if !w.whole && before[c.UID] == now && c.DeletionTimestamp == nil && (held == nil || admission.IsAdmitted(c)) {
			continue
		}
		job := effect.Job{Name: "NodeClaim " + c.Name, Effects: nodeclaim.Next(s.view(c, held, w))}
		at, removals := job.Split()
		urgent, drains = append(urgent, at), append(drains, removals)
	}
	return urgent, drains
}

// sight is what a look saw of a claim: what belongs to the cache is another object
// when it has changed.
type sight struct {
	claim *karpenter.NodeClaim
	node  *corev1.Node
}

// launches has claims launched: those of a plan that is done, which the outbox
// tells, and those that were asked for a while ago.
func (s *Service) launches(held *outbox.Held) part {
	return func(ctx context.Context, w world) error {
		var fresh error
		if held != nil {
			fresh = s.launch(ctx, nil, held.Outbox)
		}
		return errors.Join(fresh, s.ask(ctx, nil, w.claims))
	}
}

// worth joins the failures that a log should show. A blocked eviction or a
// lost swap is the ordinary course of things.
func worth(failures []error) error {
	return errors.Join(slices.DeleteFunc(failures, func(err error) bool {
		return err == nil || fault.Is(err, fault.Throttled, fault.Conflict)
	})...)
}

// fence reads the outbox where some claim waits to be admitted.
func (s *Service) fence(ctx context.Context, claims []*karpenter.NodeClaim) (*outbox.Held, error) {
	waits := slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		_, _, planned := admission.BatchOf(c)
		return planned && !admission.IsAdmitted(c) && c.DeletionTimestamp == nil
	})
	if !waits {
		return nil, nil
	}
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return nil, err
	}
	return &held, nil
}

// forget drops what is remembered of things that no longer matter.
func (s *Service) forget(claims []*karpenter.NodeClaim) {
	alive := map[string]bool{}
	for _, c := range claims {
		alive[string(c.UID)] = true
	}
	for uid := range s.pods {
		if !alive[uid] {
			delete(s.pods, uid)
		}
	}
	s.asked.prune(time.Hour)
	s.removals.Forget()
}
