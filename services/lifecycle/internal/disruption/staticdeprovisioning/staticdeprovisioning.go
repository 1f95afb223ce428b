// Package staticdeprovisioning says which nodes go when a static NodePool has more than it asks
// for. It is pure: the same view gives the same claims.
//
// The order is upstream's: claims without an instance, then nodes without pods, then
// those whose pods cost least to move; who is protected by do-not-disrupt comes
// last, and goes nevertheless. Of those that are alike a drifted one goes first,
// which spares its replacement.
//
// The invariants:
//
//   - As many nodes stay as the pool asks for, of those that stay anyway: what is being
//     deleted or replaced does not count.
//   - What comes in the place of another does not go before that.
//   - Budgets do not count, as upstream: somebody has asked for fewer nodes. The drain
//     keeps to PodDisruptionBudgets.
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

// Member is a claim of the pool, with its node and the pods there.
type Member struct {
	Claim *karpenter.NodeClaim
	// Node is nil where there is none.
	Node *corev1.Node
	Pods []*corev1.Pod
}

// View is all that is looked at.
type View struct {
	Pool *karpenter.NodePool
	// Members are all of the pool.
	Members []Member
	Now     time.Time
}

// SelectSurplus are the members that go now, in order.
func SelectSurplus(v View) []Member {
	if !v.Pool.Static() || v.Pool.DeletionTimestamp != nil {
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
	var free []ranked
	for _, m := range v.Members {
		if m.Claim.DeletionTimestamp != nil || disruption.ActingProposal(m.Claim) != nil {
			continue
		}
		if staying++; !expected[m.Claim.Name] {
			free = append(free, v.rank(m))
		}
	}
	slices.SortFunc(free, compare)
	most := min(max(staying-int(*v.Pool.Spec.Replicas), 0), len(free))
	out := make([]Member, most)
	for i := range out {
		out[i] = free[i].Member
	}
	return out
}

// place is where in the order a member is before costs are asked.
type place int

const (
	unlaunched place = iota
	empty
	used
	protected
)

// ranked is a member with what it is sorted by.
type ranked struct {
	Member
	place   place
	drifted bool
	cost    float64
}

func compare(a, b ranked) int {
	first := func(x bool) int {
		if x {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.cost, b.cost), cmp.Compare(first(a.drifted), first(b.drifted)), cmp.Compare(a.Claim.Name, b.Claim.Name))
}

// rank looks at one member. Daemons and mirrors go with their node and cost nothing,
// though they may protect it.
func (v View) rank(m Member) ranked {
	r := ranked{Member: m, drifted: m.Claim.Status.Conditions.True(karpenter.ConditionTypeDrifted)}
	kept := annotated(m)
	for _, pod := range m.Pods {
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if _, active, _ := podspec.Protected(pod, v.Now); active {
			kept = true
		}
		if !podspec.NodeBound(pod) {
			r.place = used
			r.cost += planning.EvictionCost(pod.Annotations[corev1.PodDeletionCost], priority(pod))
		}
	}
	switch {
	case m.Claim.Status.ProviderID == "":
		r.place = unlaunched
	case kept:
		r.place = protected
	case r.place != used:
		r.place = empty
	}
	created, expires := m.Claim.CreationTimestamp.Time, time.Time{}
	if after := m.Claim.Spec.ExpireAfter; !after.IsNever() {
		expires = created.Add(*after.Duration)
	}
	r.cost *= planning.LifeLeft(created, expires, v.Now)
	return r
}

func annotated(m Member) bool {
	return m.Claim.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true" ||
		m.Node != nil && m.Node.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true"
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
