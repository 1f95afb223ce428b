package lifecycle

import (
	"context"
	"fmt"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// live is what is live of the cluster beside the nodes that are to go, listed once for
// what goes in a turn: each list reads as much as the cluster is large, and an
// empty cluster is as many removals. It is safe for concurrent use by removals.
type live struct {
	pools   []*karpenter.NodePool
	claims  []*karpenter.NodeClaim
	budgets podspec.Budgets
	// seq is what the outbox said before the claims were listed, or since the last that
	// were added to them. While it says so still, nobody else has created any.
	seq uint64
	// leaving names the claims that were marked since the claims were listed.
	leaving []string

	mu   sync.Mutex
	room disruption.RemainingBudgets
}

// live lists it.
func (s *Service) live(ctx context.Context) (*live, error) {
	pools, err := cluster.List[*karpenter.NodePool](ctx, s.Client, cluster.NodePools)
	if err != nil {
		return nil, fmt.Errorf("listing NodePools for a proposal: %w", err)
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return nil, fmt.Errorf("listing NodeClaims for a proposal: %w", err)
	}
	budgets, err := cluster.List[*policyv1.PodDisruptionBudget](ctx, s.Client, cluster.DisruptionBudgets)
	if err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets for a proposal: %w", err)
	}
	nodes := nodesByProvider(s.Cache)
	room := disruption.CountBudgets(pools, claims, func(c *karpenter.NodeClaim) bool {
		node := nodes[c.Status.ProviderID]
		return node != nil && isReady(node)
	})
	return &live{pools: pools, claims: claims, budgets: podspec.NewBudgets(budgets), room: room}, nil
}

// liveAt is what is live while the outbox is as it was read: what is known, if nobody else
// has let claims pass since, or else what is listed now.
func (s *Service) liveAt(ctx context.Context, held outbox.Held, known *live) (*live, error) {
	if known != nil && known.seq == held.Seq {
		return known, nil
	}
	l, err := s.live(ctx)
	if err != nil {
		return nil, err
	}
	l.seq = held.Seq
	return l, nil
}

// passed adds the replacements that passed the door, in place of what they replace.
func (l *live) passed(f *proposalFact, held outbox.Held) {
	l.leaving = append(l.leaving, f.claimNames()...)
	for i := range f.plan.Intents {
		for k := range f.plan.Intents[i].Claims {
			l.claims = append(l.claims, &f.plan.Intents[i].Claims[k].Object)
		}
	}
	l.seq = held.Seq
}

// take gives the first objection to a proposal; without one, the room that it takes
// is nobody else's from here on.
func (l *live) take(look disruption.LiveProposal) (disruption.Objection, bool) {
	if objection, found := look.FindObjection(); found {
		return objection, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room.TakeBudget(look.Reason, look.Candidates, look.Now)
}

func lookOf(f *proposalFact, candidates []disruption.Candidate, l *live, now time.Time) disruption.LiveProposal {
	return disruption.LiveProposal{Reason: karpenter.DisruptionReason(f.body.Reason), Method: f.body.Method, Moved: f.body.Moved, Candidates: candidates, Budgets: l.budgets, Now: now}
}
