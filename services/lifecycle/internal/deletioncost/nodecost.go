package deletioncost

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// MaxNodes is how many nodes a run changes at most, in addition to the nodes that are being removed.
const MaxNodes = 50

// NodeCost is the annotation that the pods of a node should have.
type NodeCost struct {
	Node string
	// Value is nil if the pods should have no annotation.
	Value *string
}

// ListCosts returns the costs of the nodes that a run changes, nodes that are being removed first, and
// the number of these nodes by NodePool.
func (r Ranking) ListCosts() (costs []NodeCost, nodes map[string]int) {
	nodes = map[string]int{}
	// add adds the cost of a node if it changes a pod, and reports whether it does.
	add := func(n RankedNode, value *string) bool {
		cost := NodeCost{n.Node.Name, value}
		if changed, _ := cost.SplitPods(n.Pods); len(changed) == 0 {
			return false
		}
		costs = append(costs, cost)
		nodes[n.Claim.Labels[karpenter.NodePoolLabelKey]]++
		return true
	}
	for _, n := range r.Leaving {
		add(n, formatRank(math.MinInt32))
	}
	left := MaxNodes
	for i, n := range r.Ranked {
		if left > 0 && add(n, formatRank(i-len(r.Ranked))) {
			left--
		}
	}
	for _, n := range r.Unranked {
		if left > 0 && add(n, nil) {
			left--
		}
	}
	return costs, nodes
}

// SplitPods returns the pods of the node whose annotation is another, and how many have it already.
// Pods whose deletion cost no ReplicaSet compares are in neither.
func (c NodeCost) SplitPods(pods []*corev1.Pod) (changed []*corev1.Pod, unchanged int) {
	for _, pod := range pods {
		if !isCompared(pod) {
			continue
		}
		value, has := pod.Annotations[corev1.PodDeletionCost]
		if has == (c.Value != nil) && (!has || value == *c.Value) {
			unchanged++
		} else {
			changed = append(changed, pod)
		}
	}
	return changed, unchanged
}

// isCompared reports whether a ReplicaSet compares the pod's deletion cost.
func isCompared(pod *corev1.Pod) bool {
	return isControlledBy(pod, "apps/v1", "ReplicaSet") && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func formatRank(rank int) *string { return new(strconv.Itoa(rank)) }
