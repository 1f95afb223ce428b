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

// spendRate records on NodePools with a rate limit that the disruption of a proposal's claims
// begins. It does so before the claims are marked, so a crash in between counts too many, never too
// few. It returns an objection if a pool's limit is reached. The record is a compare-and-swap on
// the live NodePool, so that concurrent writers cannot exceed the limit.
func (s *Service) spendRate(ctx context.Context, proposal string, candidates []disruption.Candidate, l *liveState) (disruption.Objection, error) {
	wanted := map[string]int{}
	for _, c := range candidates {
		wanted[c.Claim.Labels[karpenter.NodePoolLabelKey]]++
	}
	for _, pool := range slices.Sorted(maps.Keys(wanted)) {
		if !l.hasRate(pool) {
			continue
		}
		why, err := s.spendRateOf(ctx, pool, l.countNodes(pool), proposal, wanted[pool])
		if err != nil {
			return disruption.Objection{}, fmt.Errorf("recording disruptions on NodePool %s: %w", pool, err)
		}
		if why != "" {
			return disruption.Objection{Pool: pool, Why: why}, nil
		}
	}
	return disruption.Objection{}, nil
}

// spendRateOrReject calls spendRate for a proposal and rejects the proposal if there is an
// objection.
func (s *Service) spendRateOrReject(ctx context.Context, f *proposalMessage, candidates []disruption.Candidate, l *liveState) (refused bool, err error) {
	objection, err := s.spendRate(ctx, f.body.Proposal, candidates, l)
	if err != nil || objection.Why == "" {
		return false, err
	}
	return true, s.rejectProposal(ctx, f.body, candidates, objection)
}

// spendRateOf calls spendRate for one pool. It returns why the limit is reached, or "".
func (s *Service) spendRateOf(ctx context.Context, name string, nodes int, proposal string, wanted int) (string, error) {
	for try := 1; ; try++ {
		np, err := cluster.Get[*karpenter.NodePool](ctx, s.Client, cluster.NodePools, cluster.Key{Name: name})
		if err != nil {
			return "", err
		}
		text, why := computeSpent(np, nodes, proposal, wanted, s.Now())
		if why != "" || text == np.Annotations[budget.SpentAnnotation] {
			return why, nil
		}
		next := np.DeepCopy()
		annotateObject(next, budget.SpentAnnotation, text)
		if _, err = s.Client.Update(ctx, next); err == nil || !fault.Is(err, fault.Conflict) || try == maxWriteAttempts {
			return "", err
		}
	}
}

// computeSpent returns the pool's annotation after this many disruptions began, or why they are not
// allowed.
func computeSpent(np *karpenter.NodePool, nodes int, proposal string, wanted int, now time.Time) (text, why string) {
	rate, err := budget.ReadRate(np, nodes)
	if err != nil {
		return "", err.Error()
	}
	spent, may := rate.Reserve(proposal, wanted, now)
	if !may {
		return "", rate.Explain(now)
	}
	if !spent.IsLimited() {
		return np.Annotations[budget.SpentAnnotation], ""
	}
	return spent.Text(), ""
}

// hasRate reports whether the pool has a rate limit, including one that cannot be parsed.
func (l *liveState) hasRate(pool string) bool {
	i := slices.IndexFunc(l.pools, func(np *karpenter.NodePool) bool { return np.Name == pool })
	if i < 0 {
		return false
	}
	rate, err := budget.ReadRate(l.pools[i], 0)
	return err != nil || rate.IsLimited()
}

// countNodes returns how many nodes of the pool its budgets count.
func (l *liveState) countNodes(pool string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remaining.CountNodes(pool)
}
