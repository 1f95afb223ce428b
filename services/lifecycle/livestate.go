package lifecycle

import (
	"context"
	"fmt"
	"sync"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// liveState is the state of the cluster as listed from the API server for one turn of proposals.
// One list serves all proposals of a turn, because each list reads the whole cluster. Concurrent
// removals may use it.
type liveState struct {
	pools   []*karpenter.NodePool
	claims  []*karpenter.NodeClaim
	budgets podspec.Budgets
	// outboxSeq is the sequence number of the outbox before the claims were listed or last added
	// to. While the outbox still has it, no other plan has created claims.
	outboxSeq uint64
	// leaving names the claims whose removal began after the claims were listed.
	leaving []string

	mu        sync.Mutex
	remaining disruption.RemainingBudgets
}

// readLiveState lists NodePools, NodeClaims and PodDisruptionBudgets. The turn's own reservations use
// budgets only of the failed claims, whose confirmation may still be written although it had an error.
func (s *Service) readLiveState(ctx context.Context, failed map[string]bool) (*liveState, error) {
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
	own := func(c *karpenter.NodeClaim) bool {
		return c.Annotations[planning.ReservationAnnotation] == s.reservation && !failed[c.Name]
	}
	room := disruption.CountBudgets(pools, claims, own, func(c *karpenter.NodeClaim) bool {
		node := nodes[c.Status.ProviderID]
		return node != nil && conditions.NodeReady(node)
	})
	return &liveState{pools: pools, claims: claims, budgets: podspec.NewBudgets(budgets), remaining: room}, nil
}

// cachedBudgets returns the PodDisruptionBudgets of the cache.
func (s *Service) cachedBudgets() podspec.Budgets {
	return podspec.NewBudgets(cluster.ListCached[*policyv1.PodDisruptionBudget](s.Cache, cluster.DisruptionBudgets))
}

// liveStateAt returns the known state if no other plan has been admitted since it was read, else it
// lists the state again.
func (s *Service) liveStateAt(ctx context.Context, held outbox.Stored, known *liveState, failed map[string]bool) (*liveState, error) {
	if known != nil && known.outboxSeq == held.Seq {
		return known, nil
	}
	l, err := s.readLiveState(ctx, failed)
	if err != nil {
		return nil, err
	}
	l.outboxSeq = held.Seq
	s.counted.startAt(held.UID(), held.Seq, l.claims, s.Cache)
	return l, nil
}

// addReplacements adds the admitted replacements of a proposal and marks its claims as leaving.
func (l *liveState) addReplacements(f *proposalMessage, held outbox.Stored) {
	l.leaving = append(l.leaving, f.claimNames()...)
	for i := range f.plan.Intents {
		for k := range f.plan.Intents[i].Claims {
			l.claims = append(l.claims, &f.plan.Intents[i].Claims[k].Object)
		}
	}
	l.outboxSeq = held.Seq
}

// takeBudget returns the first objection to a proposal. Without an objection it consumes the
// budgets that the proposal needs.
func (l *liveState) takeBudget(look disruption.LiveProposal) (disruption.Objection, bool) {
	if objection, found := look.FindObjection(); found {
		return objection, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remaining.TakeBudget(look.Reason, look.Candidates, look.Now)
}

func (s *Service) newLiveProposal(f *proposalMessage, candidates []disruption.Candidate, l *liveState) disruption.LiveProposal {
	return disruption.LiveProposal{Reason: karpenter.DisruptionReason(f.body.Reason), Method: f.body.Method, Reboot: f.body.Reboot, Moved: f.body.Moved, Candidates: candidates, Budgets: l.budgets, Repair: s.Repair, Now: s.Now()}
}
