// Package deletioncost ranks nodes by how soon they should lose their pods, for the annotation
// controller.kubernetes.io/pod-deletion-cost. When a Deployment shrinks, its ReplicaSet then removes
// pods from the nodes that consolidation would remove next. The package is pure: the same view gives
// the same costs.
//
// The groups and their order are Karpenter's (pkg/controllers/pod/deletioncost/ranking.go).
//
// The invariants:
//   - Only pods whose controller is a ReplicaSet are written, because nothing else reads the annotation.
//   - The ranks are -n to -1, without gaps, the lowest for the node that should go first.
//   - At most MaxNodes nodes change in one run, in addition to the nodes that are being removed.
package deletioncost

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// RankedNode is a node of a NodeClaim, with its pods.
type RankedNode struct {
	disruption.Candidate
	// Pool is nil if the NodePool does not exist.
	Pool *karpenter.NodePool
	// Price is in US dollars per hour; 0 if it is unknown.
	Price float64
	// Offered reports that the NodePool still offers the instance type.
	Offered bool
}

// RankingView is the input of RankNodes.
type RankingView struct {
	Nodes   []RankedNode
	Budgets podspec.Budgets
	// Remaining returns how many further nodes of a NodePool its budgets allow to remove for the
	// reason.
	Remaining func(pool *karpenter.NodePool, reason karpenter.DisruptionReason) int
	Now       time.Time
}

// Ranking is the result of RankNodes.
type Ranking struct {
	// Leaving are the nodes that are being removed.
	Leaving []RankedNode
	// Ranked are the nodes that may be removed, in order: drifted nodes first, and within them and the
	// others the highest price per cost of moving the pods first.
	Ranked []RankedNode
	// Unranked are the other nodes.
	Unranked []RankedNode
}

// group is the class of a node before budgets.
type group int

const (
	leaving group = iota
	drifted
	disruptable
	unranked
)

// RankNodes ranks the nodes.
func RankNodes(v RankingView) Ranking {
	nodes := slices.Clone(v.Nodes)
	ratios := make(map[string]float64, len(nodes))
	for _, n := range nodes {
		ratios[n.Claim.Name] = n.Price / n.moveCost()
	}
	slices.SortFunc(nodes, func(a, b RankedNode) int {
		return cmp.Or(-cmp.Compare(ratios[a.Claim.Name], ratios[b.Claim.Name]), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	groups := map[group][]RankedNode{}
	for _, n := range nodes {
		of := v.classifyNode(n)
		groups[of] = append(groups[of], n)
	}
	r := Ranking{Leaving: groups[leaving], Unranked: groups[unranked]}
	for _, part := range []struct {
		nodes  []RankedNode
		reason karpenter.DisruptionReason
	}{{groups[drifted], karpenter.DisruptionReasonDrifted}, {groups[disruptable], karpenter.DisruptionReasonUnderutilized}} {
		within, beyond := v.splitByBudget(part.nodes, part.reason)
		r.Ranked, r.Unranked = append(r.Ranked, within...), append(r.Unranked, beyond...)
	}
	return r
}

// classifyNode returns the group of a node.
func (v RankingView) classifyNode(n RankedNode) group {
	if n.Claim.DeletionTimestamp != nil || n.Node.DeletionTimestamp != nil || disruption.ActingProposal(n.Claim) != nil || disruption.IsMarked(n.Claim, n.Node) {
		return leaving
	}
	look := disruption.LiveProposal{
		Reason: karpenter.DisruptionReasonUnderutilized, Moved: math.MaxInt, Candidates: []disruption.Candidate{n.Candidate}, Budgets: v.Budgets, Now: v.Now,
	}
	if _, blocked := look.FindObjection(); blocked || !n.Offered || slices.ContainsFunc(n.Pods, pinsNode) {
		return unranked
	}
	if n.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted) && (n.Pool == nil || !n.Pool.IsStatic()) {
		return drifted
	}
	if n.Pool != nil && n.Pool.Spec.Disruption.ConsolidateAfter.IsNever() {
		return unranked
	}
	return disruptable
}

// splitByBudget returns the nodes within the budgets of their NodePools, and the others.
func (v RankingView) splitByBudget(nodes []RankedNode, reason karpenter.DisruptionReason) (within, beyond []RankedNode) {
	left := map[string]int{}
	for _, n := range nodes {
		if n.Pool == nil {
			beyond = append(beyond, n)
			continue
		}
		if _, known := left[n.Pool.Name]; !known {
			left[n.Pool.Name] = v.Remaining(n.Pool, reason)
		}
		if left[n.Pool.Name] > 0 {
			left[n.Pool.Name]--
			within = append(within, n)
		} else {
			beyond = append(beyond, n)
		}
	}
	return within, beyond
}

// moveCost returns the cost of moving the node's pods, at least 1.
func (n RankedNode) moveCost() float64 {
	cost := 1.0
	for _, pod := range n.Pods {
		if podspec.Reschedulable(pod) {
			var priority int32
			if pod.Spec.Priority != nil {
				priority = *pod.Spec.Priority
			}
			cost += max(planning.EvictionCost(podspec.CostAnnotation(pod, true), priority), 0)
		}
	}
	return cost
}

// pinsNode reports whether nothing would create the pod again on another node: its controller is not
// a ReplicaSet, a Job or a DaemonSet. Pods of kube-system do not count.
func pinsNode(pod *corev1.Pod) bool {
	return pod.Namespace != metav1.NamespaceSystem && !isControlledBy(pod, "apps/v1", "ReplicaSet") &&
		!isControlledBy(pod, "batch/v1", "Job") && !isControlledBy(pod, "apps/v1", "DaemonSet")
}

func isControlledBy(pod *corev1.Pod, version, kind string) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.APIVersion == version && owner.Kind == kind
}
