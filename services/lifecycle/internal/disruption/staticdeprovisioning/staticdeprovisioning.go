// Package staticdeprovisioning selects the nodes to remove when a static NodePool has more nodes
// than replicas. It is pure: the same view gives the same claims.
//
// The order is Karpenter's: claims without an instance, then empty nodes, then nodes by disruption
// cost; nodes with do-not-disrupt come last, and are removed nevertheless. If equal, a drifted node
// comes first, which makes its replacement unnecessary.
//
// The invariants:
//   - As many nodes remain as the pool has replicas. Nodes that are being deleted or replaced do not
//     count.
//   - A replacement is not removed before the node that it replaces.
//   - Budgets do not apply, as in Karpenter, because a user reduced the replicas. The drain respects
//     PodDisruptionBudgets.
package staticdeprovisioning

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Member is a claim of the pool with its node and its pods.
type Member struct {
	Claim *karpenter.NodeClaim
	// Node may be nil.
	Node *corev1.Node
	Pods []*corev1.Pod
}

// View is the input of SelectSurplus.
type View struct {
	Pool *karpenter.NodePool
	// Members are all claims of the pool.
	Members []Member
	// ManagesDeletionCosts reports that lifecycle writes pod-deletion-cost, so that it states no cost.
	ManagesDeletionCosts bool
	Now                  time.Time
}

// SelectSurplus returns the members to remove now, in order.
func SelectSurplus(v View) []Member {
	if !v.Pool.IsStatic() || v.Pool.DeletionTimestamp != nil {
		return nil
	}
	expected := map[string]bool{}
	for _, m := range v.Members {
		if p := disruption.ActingProposal(m.Claim); p != nil {
			for _, name := range p.Replacements {
				expected[name] = true
			}
		}
	}
	staying := 0
	var free []rankedMember
	for _, m := range v.Members {
		if m.Claim.DeletionTimestamp != nil || disruption.ActingProposal(m.Claim) != nil {
			continue
		}
		if staying++; !expected[m.Claim.Name] {
			free = append(free, v.rankMember(m))
		}
	}
	slices.SortFunc(free, compareMembers)
	most := min(max(staying-int(*v.Pool.Spec.Replicas), 0), len(free))
	out := make([]Member, most)
	for i := range out {
		out[i] = free[i].Member
	}
	return out
}

// tier is the first sort key of a member, before its cost.
type tier int

const (
	tierUnlaunched tier = iota
	tierEmpty
	tierUsed
	tierProtected
)

// rankedMember is a member with its sort keys.
type rankedMember struct {
	Member
	tier    tier
	drifted bool
	cost    float64
}

func compareMembers(a, b rankedMember) int {
	first := func(x bool) int {
		if x {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.cost, b.cost), cmp.Compare(first(a.drifted), first(b.drifted)), cmp.Compare(a.Claim.Name, b.Claim.Name))
}

// rankMember computes the sort keys of a member. DaemonSet and mirror pods cost nothing, but
// their do-not-disrupt annotation counts.
func (v View) rankMember(m Member) rankedMember {
	r := rankedMember{Member: m, drifted: m.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted)}
	kept := hasDoNotDisrupt(m)
	for _, pod := range m.Pods {
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if _, active, _ := podspec.Protected(pod, v.Now); active {
			kept = true
		}
		if !podspec.NodeBound(pod) {
			r.tier = tierUsed
			r.cost += planning.EvictionCost(podspec.CostAnnotation(pod, v.ManagesDeletionCosts), podPriority(pod))
		}
	}
	switch {
	case m.Claim.Status.ProviderID == "":
		r.tier = tierUnlaunched
	case kept:
		r.tier = tierProtected
	case r.tier != tierUsed:
		r.tier = tierEmpty
	}
	created, expires := m.Claim.CreationTimestamp.Time, time.Time{}
	if after := m.Claim.Spec.ExpireAfter; !after.IsNever() {
		expires = created.Add(*after.Duration)
	}
	r.cost *= planning.LifetimeRemaining(created, expires, v.Now)
	return r
}

func hasDoNotDisrupt(m Member) bool {
	return m.Claim.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true" ||
		m.Node != nil && m.Node.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true"
}

func podPriority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
