package planning

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Shortfall is how many nodes a static NodePool lacks.
type Shortfall struct {
	NodePool string
	// Count is positive.
	Count int
}

// FindShortfalls returns the static NodePools that have fewer nodes than replicas, by name. Nodes that
// are being removed do not count as replicas, but count against limits.nodes until they are gone.
// Lifecycle removes surplus nodes.
func FindShortfalls(s Snapshot) []Shortfall {
	return FindShortfallsWithout(&s, func(i int) bool { return s.Nodes[i].MarkedForDeletion })
}

// FindShortfallsWithout is FindShortfalls with going deciding, by index, which nodes are being
// removed.
func FindShortfallsWithout(s *Snapshot, going func(i int) bool) []Shortfall {
	if !s.Settings.Gates.StaticCapacity {
		return nil
	}
	var out []Shortfall
	for i := range s.NodePools {
		np := &s.NodePools[i]
		if !np.IsStatic() || NotReadyReason(np) != "" {
			continue
		}
		staying, all := int64(0), int64(0)
		for j := range s.Nodes {
			if node := &s.Nodes[j]; node.Claim != "" && node.NodePool == np.Name {
				all++
				if !going(j) {
					staying++
				}
			}
		}
		count := *np.Spec.Replicas - staying
		if limit, limited := np.Spec.Limits[karpenter.ResourceNodes]; limited {
			count = min(count, limit.Value()-all)
		}
		if count > 0 {
			out = append(out, Shortfall{np.Name, int(count)})
		}
	}
	slices.SortFunc(out, func(a, b Shortfall) int { return cmp.Compare(a.NodePool, b.NodePool) })
	return out
}

// NotReadyReason returns why the NodePool may not be used, apart from the state of its node class; "" if
// it may. As in Karpenter, the condition Ready must be True: a NodePool without the condition has not
// been reconciled yet.
func NotReadyReason(np *karpenter.NodePool) string {
	ready, known := np.Status.Conditions.Get(karpenter.ConditionTypeReady)
	switch {
	case !np.IsManaged():
		return "the NodePool belongs to another provider, because its node class is not an EC2NodeClass"
	case np.DeletionTimestamp != nil:
		return "the NodePool is being deleted"
	case !known:
		return "the NodePool has not been reconciled yet"
	case ready.Status != metav1.ConditionTrue:
		return "the NodePool is not ready: " + ready.Message
	}
	return ""
}
