package lifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/registrationhealth"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// nodePools keeps each pool's counter, conditions, hash and memory of
// registrations. One that fails holds up no other.
func (s *Service) nodePools(ctx context.Context, w world) error {
	members := s.members(w)
	var failures []error
	for _, np := range cluster.Cached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
		effects, err := s.nodePool(ctx, np, w, members[np.Name])
		if err == nil {
			err = s.do.Do(ctx, nil, effects...)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("NodePool %s: %w", np.Name, err))
		}
	}
	return worth(failures)
}

// members are the claims and nodes of each pool, by its name.
func (s *Service) members(w world) map[string][]nodepool.Member {
	out := map[string][]nodepool.Member{}
	claimed := map[string]bool{}
	for _, c := range w.claims {
		member := nodepool.Member{Claim: c}
		if id := c.Status.ProviderID; id != "" {
			member.Node = nodeOf(c, w.nodes[id])
			claimed[id] = true
		}
		name := c.Labels[karpenter.NodePoolLabelKey]
		out[name] = append(out[name], member)
	}
	for _, node := range cluster.Cached[*corev1.Node](s.Cache, cluster.Nodes) {
		if name := node.Labels[karpenter.NodePoolLabelKey]; name != "" && !claimed[node.Spec.ProviderID] {
			out[name] = append(out[name], nodepool.Member{Node: node})
		}
	}
	return out
}

// nodePool writes the pool's annotations, and in a look in which they are right its
// status: two writes of one look would be at the same version.
func (s *Service) nodePool(ctx context.Context, np *karpenter.NodePool, w world, members []nodepool.Member) ([]effect.Effect, error) {
	if nodepool.ForeignClass(np) {
		return nil, nil
	}
	view := nodepool.View{Pool: np, Members: members, Now: s.Now()}
	if ref := np.Spec.Template.Spec.NodeClassRef; ref != nil {
		view.Class = w.classes[ref.Name]
	}
	want, err := nodepool.WithHash(np)
	if err != nil {
		return nil, fault.E("hashing", fault.Bug, err)
	}
	claims := claimsIn(members)
	if view.Class != nil {
		view.Health = registrationhealth.ReadHistory(np, view.Class, s.Now()).WithOutcomes(np, claims)
		want[registrationhealth.HistoryAnnotation] = view.Health.Encode()
	}
	if !carries(np.Annotations, want) {
		// The pool is written after its claims: a claim that still has a hash of an older
		// version is then found again.
		if err := s.rehash(ctx, nodepool.RehashClaims(np, want, claims)); err != nil {
			return nil, err
		}
		return annotated(np, want), nil
	}
	said := troubles(view)
	next := np.DeepCopy()
	next.Status = nodepool.ComputeStatus(view)
	if equalJSON(np.Status, next.Status) {
		return said, nil
	}
	return append(said, effect.UpdateStatus{Object: next}), nil
}

func claimsIn(members []nodepool.Member) []*karpenter.NodeClaim {
	var out []*karpenter.NodeClaim
	for _, m := range members {
		if m.Claim != nil {
			out = append(out, m.Claim)
		}
	}
	return out
}

func carries(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// annotated writes the pool's annotations.
func annotated(np *karpenter.NodePool, want map[string]string) []effect.Effect {
	next := np.DeepCopy()
	for key, value := range want {
		annotate(next, key, value)
	}
	return []effect.Effect{effect.Update{Object: next}}
}
