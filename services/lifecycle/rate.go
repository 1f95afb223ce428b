package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
)

// spend writes down on their NodePools that the claims of a proposal begin to go, where
// these ask for a rate, before any claim says so: who dies in between has
// counted what did not begin, and never the other way round. It objects where a pool has
// no room for them, by what stands on it at the moment: whoever else lets nodes go
// writes the same, and one of two is too late.
func (s *Service) spend(ctx context.Context, proposal string, candidates []disruption.Candidate, l *live) (disruption.Objection, error) {
	wanted := map[string]int{}
	for _, c := range candidates {
		wanted[c.Claim.Labels[karpenter.NodePoolLabelKey]]++
	}
	for _, pool := range slices.Sorted(maps.Keys(wanted)) {
		if !l.rated(pool) {
			continue
		}
		why, err := s.spendOf(ctx, pool, l.nodes(pool), proposal, wanted[pool])
		if err != nil {
			return disruption.Objection{}, fmt.Errorf("writing on NodePool %s that nodes of it go: %w", pool, err)
		}
		if why != "" {
			return disruption.Objection{Pool: pool, Why: why}, nil
		}
	}
	return disruption.Objection{}, nil
}

// spends is spend for a fact, whose proposal is taken back where it is refused.
func (s *Service) spends(ctx context.Context, f *proposalFact, candidates []disruption.Candidate, l *live) (refused bool, err error) {
	objection, err := s.spend(ctx, f.body.Proposal, candidates, l)
	if err != nil || objection.Why == "" {
		return false, err
	}
	return true, s.refuseProposal(ctx, f.body, candidates, objection)
}

// spendOf does so for one pool; it says why there is no room, or "".
func (s *Service) spendOf(ctx context.Context, name string, nodes int, proposal string, wanted int) (string, error) {
	for try := 1; ; try++ {
		np, err := cluster.Get[*karpenter.NodePool](ctx, s.Client, cluster.NodePools, cluster.Key{Name: name})
		if err != nil {
			return "", err
		}
		text, why := spending(np, nodes, proposal, wanted, s.Now())
		if why != "" || text == np.Annotations[budget.SpentAnnotation] {
			return why, nil
		}
		next := np.DeepCopy()
		annotate(next, budget.SpentAnnotation, text)
		if _, err = s.Client.Update(ctx, next); err == nil || !fault.Is(err, fault.Conflict) || try == tries {
			return "", err
		}
	}
}

// spending is what the pool is to remember once so many of its nodes go, or why they may
// not.
func spending(np *karpenter.NodePool, nodes int, proposal string, wanted int, now time.Time) (text, why string) {
	rate, err := budget.RateOf(np, nodes)
	if err != nil {
		return "", err.Error()
	}
	spent, may := rate.Spend(proposal, wanted, now)
	if !may {
		return "", rate.Why(now)
	}
	if !spent.Asked() {
		return np.Annotations[budget.SpentAnnotation], ""
	}
	return spent.Text(), ""
}

// rated reports whether a pool asks for a rate, or for something that cannot be read.
func (l *live) rated(pool string) bool {
	i := slices.IndexFunc(l.pools, func(np *karpenter.NodePool) bool { return np.Name == pool })
	if i < 0 {
		return false
	}
	rate, err := budget.RateOf(l.pools[i], 0)
	return err != nil || rate.Asked()
}

// nodes is how many nodes a pool has to its budgets.
func (l *live) nodes(pool string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room.Nodes(pool)
}
