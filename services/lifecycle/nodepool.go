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

// reconcileNodePools updates the status, hash and registration history of each NodePool. An error
// on one does not stop the others.
func (s *Service) reconcileNodePools(ctx context.Context, w clusterState) error {
	members := s.nodePoolMembers(w)
	var failures []error
	for _, np := range s.listPools() {
		effects, err := s.nodePoolEffects(ctx, np, w, members[np.Name])
		if err == nil {
			err = s.executor.Execute(ctx, nil, effects...)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("NodePool %s: %w", np.Name, err))
		}
	}
	return joinUnexpected(failures)
}

// nodePoolMembers returns the claims and nodes of each pool, by its name.
func (s *Service) nodePoolMembers(w clusterState) map[string][]nodepool.Member {
	out := map[string][]nodepool.Member{}
	claimed := map[string]bool{}
	for _, c := range w.claims {
		member := nodepool.Member{Claim: c}
		if id := c.Status.ProviderID; id != "" {
			member.Node = selectNode(c, w.nodesByProviderID[id])
			claimed[id] = true
		}
		name := c.Labels[karpenter.NodePoolLabelKey]
		out[name] = append(out[name], member)
	}
	for _, node := range cluster.ListCached[*corev1.Node](s.Cache, cluster.Nodes) {
		if name := node.Labels[karpenter.NodePoolLabelKey]; name != "" && !claimed[node.Spec.ProviderID] {
			out[name] = append(out[name], nodepool.Member{Node: node})
		}
	}
	return out
}

// nodePoolEffects writes the pool's annotations. If they are current, it writes the status instead,
// because two writes in one reconcile would use the same resourceVersion.
func (s *Service) nodePoolEffects(ctx context.Context, np *karpenter.NodePool, w clusterState, members []nodepool.Member) ([]effect.Effect, error) {
	view := nodepool.View{Pool: np, Members: members, Now: s.Now()}
	if ref := np.Spec.Template.Spec.NodeClassRef; ref != nil {
		view.Class = w.classes[ref.Name]
	}
	want, err := nodepool.HashAnnotations(np)
	if err != nil {
		return nil, fault.E("hashing", fault.Bug, err)
	}
	claims := memberClaims(members)
	if view.Class != nil {
		view.Health = registrationhealth.ReadHistory(np, view.Class, s.Now()).WithOutcomes(np, claims)
		want[registrationhealth.HistoryAnnotation] = view.Health.Encode()
	}
	if !hasAnnotations(np.Annotations, want) {
		// The pool is written after its claims, so that a claim whose hash was not updated is found
		// again.
		if err := s.updateHashes(ctx, nodepool.RehashClaims(np, want, claims)); err != nil {
			return nil, err
		}
		return annotatePool(np, want), nil
	}
	effects := nodePoolProblems(view)
	next := np.DeepCopy()
	next.Status = nodepool.ComputeStatus(view)
	if equalJSON(np.Status, next.Status) {
		return effects, nil
	}
	return append(effects, effect.UpdateStatus{Object: next}), nil
}

func memberClaims(members []nodepool.Member) []*karpenter.NodeClaim {
	var out []*karpenter.NodeClaim
	for _, m := range members {
		if m.Claim != nil {
			out = append(out, m.Claim)
		}
	}
	return out
}

func hasAnnotations(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// annotatePool returns the effect that writes the pool's annotations.
func annotatePool(np *karpenter.NodePool, want map[string]string) []effect.Effect {
	next := np.DeepCopy()
	for key, value := range want {
		annotateObject(next, key, value)
	}
	return []effect.Effect{effect.Update{Object: next}}
}
