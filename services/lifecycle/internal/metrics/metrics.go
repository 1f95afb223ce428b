// Package metrics derives Karpenter's metrics from the changes of NodeClaims and their nodes
// between two reconciles.
//
// Metrics are derived from the objects and not counted at writes, because a write may be repeated
// or made by another client. The invariant: each transition of a claim counts in exactly one
// reconcile.
package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Count is one change.
type Count struct {
	Metric metric.Metric
	Value  float64
	Labels []string
	// Claim is the UID of the claim.
	Claim types.UID
}

// ClaimAndNode is a claim and its node in one reconcile. The node may be nil.
type ClaimAndNode struct {
	Claim *karpenter.NodeClaim
	Node  *corev1.Node
}

// Snapshots are the claims of two successive reconciles, by UID.
type Snapshots struct {
	Before, Now map[types.UID]ClaimAndNode
	// At is when the second reconcile began.
	At time.Time
	// Why returns why lifecycle deleted a claim; false if it did not.
	Why func(uid types.UID) (string, bool)
	// Pool returns a NodePool, nil if it does not exist.
	Pool func(name string) *karpenter.NodePool
	// Moving returns how many pods of a node need another node without it.
	Moving func(node string) int
}

// CountChanges returns the changes between the two reconciles, sorted by metric and labels.
func (l Snapshots) CountChanges() []Count {
	var all []Count
	add := func(uid types.UID, some ...Count) {
		for _, c := range some {
			c.Claim = uid
			all = append(all, c)
		}
	}
	for uid, now := range l.Now {
		before, known := l.Before[uid]
		switch {
		case !known:
			add(uid, l.countCreated(now.Claim))
			add(uid, l.countTransitions(ClaimAndNode{Claim: &karpenter.NodeClaim{}}, now)...)
		case before != now:
			add(uid, l.countTransitions(before, now)...)
		}
	}
	for uid, before := range l.Before {
		if _, still := l.Now[uid]; !still {
			add(uid, l.countTerminated(before)...)
		}
	}
	slices.SortFunc(all, func(a, b Count) int {
		return slices.Compare(append([]string{a.Metric.Name}, a.Labels...), append([]string{b.Metric.Name}, b.Labels...))
	})
	return all
}

// countCreated counts a new claim, with the reason of the proposal that it is a replacement for.
func (l Snapshots) countCreated(c *karpenter.NodeClaim) Count {
	reason := "provisioned"
	for _, s := range l.Now {
		if p := disruption.ActingProposal(s.Claim); p != nil && slices.Contains(p.Replacements, c.Name) {
			reason = karpenter.DisruptionReason(p.Reason).Label()
			break
		}
	}
	relaxed := c.Annotations[karpenter.NodeClaimMinValuesRelaxedAnnotationKey] == "true"
	return Count{Metric: metric.ClaimsCreated, Value: 1, Labels: []string{reason, nodePoolOf(c), strconv.FormatBool(relaxed)}}
}

// countTransitions counts conditions that became true, and deletions that began.
func (l Snapshots) countTransitions(before, now ClaimAndNode) []Count {
	var all []Count
	c := now.Claim
	if becameTrue(before.Claim, c, karpenter.ConditionTypeRegistered) {
		all = append(all, Count{Metric: metric.NodesCreated, Value: 1, Labels: []string{nodePoolOf(c), zoneOf(c)}})
	}
	if becameTrue(before.Claim, c, karpenter.ConditionTypeInitialized) {
		condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
		all = append(all, Count{Metric: metric.ClaimInitialization, Value: condition.LastTransitionTime.Sub(c.CreationTimestamp.Time).Seconds(), Labels: []string{nodePoolOf(c)}})
	}
	if before.Claim.DeletionTimestamp == nil && c.DeletionTimestamp != nil {
		all = append(all, l.countDisrupted(now)...)
	}
	if becameTrue(before.Claim, c, karpenter.ConditionTypeRebooting) {
		all = append(all, l.countDisruptedFor(now, rebootReason(c))...)
	}
	all = append(all, l.countRebootEnd(before.Claim, c)...)
	if becameTrue(before.Claim, c, karpenter.ConditionTypeDrained) {
		condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeDrained)
		all = append(all, l.countOverdue(c, condition.LastTransitionTime.Time)...)
	}
	if before.Node != nil && now.Node == nil {
		all = append(all, l.countNodeTerminated(before)...)
	}
	return all
}

// countDisrupted counts a claim whose deletion began, and its pods if Karpenter counts them for the
// reason.
func (l Snapshots) countDisrupted(of ClaimAndNode) []Count {
	why, ours := l.Why(of.Claim.UID)
	if !ours || strings.HasPrefix(why, rebootFailed) {
		return nil // Karpenter does not count the deletions of other clients either, and counted the reboot before.
	}
	return l.countDisruptedFor(of, why)
}

// countDisruptedFor counts a disruption of the claim for the reason.
func (l Snapshots) countDisruptedFor(of ClaimAndNode, why string) []Count {
	c := of.Claim
	reason := ReasonLabel(why)
	labels := []string{reason, nodePoolOf(c), capacityTypeOf(c), policyLabel(reason, l.Pool(nodePoolOf(c))), terminationMode(c)}
	all := []Count{{Metric: metric.ClaimsDisrupted, Value: 1, Labels: labels}}
	if condition, limit := repairOf(c, why); condition != "" {
		labels := []string{condition, nodePoolOf(c), capacityTypeOf(c), c.Status.ImageID, modeOfLimit(limit)}
		all = append(all, Count{Metric: metric.UnhealthyDisrupted, Value: 1, Labels: labels})
	}
	if countsPods(reason) {
		moving := 0
		if of.Node != nil {
			moving = l.Moving(of.Node.Name)
		}
		all = append(all, Count{Metric: metric.PodsDisrupted, Value: float64(moving), Labels: labels})
	}
	return all
}

// countTerminated counts the end of a claim, and of its node if that was not counted before.
func (l Snapshots) countTerminated(before ClaimAndNode) []Count {
	c := before.Claim
	all := []Count{{Metric: metric.ClaimsTerminated, Value: 1, Labels: []string{nodePoolOf(c), capacityTypeOf(c), zoneOf(c)}}}
	if c.DeletionTimestamp != nil {
		all = append(all, Count{Metric: metric.ClaimTermination, Value: l.At.Sub(c.DeletionTimestamp.Time).Seconds(), Labels: []string{nodePoolOf(c)}})
	} else {
		all = append(all, l.countDisrupted(before)...)
	}
	if before.Node == nil {
		return all
	}
	if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrained) {
		all = append(all, l.countOverdue(c, l.At)...)
	}
	return append(all, l.countNodeTerminated(before)...)
}

// countNodeTerminated counts the end of a node.
func (l Snapshots) countNodeTerminated(before ClaimAndNode) []Count {
	c := before.Claim
	all := []Count{{Metric: metric.NodesTerminated, Value: 1, Labels: []string{nodePoolOf(c), zoneOf(c)}}}
	if at := before.Node.DeletionTimestamp; at != nil {
		all = append(all, Count{Metric: metric.NodeTermination, Value: l.At.Sub(at.Time).Seconds(), Labels: []string{nodePoolOf(c)}})
	}
	return all
}

// countOverdue counts a drain that ended only because the deadline that AWS announced had passed.
// The pool's own terminationGracePeriod does not count.
func (l Snapshots) countOverdue(c *karpenter.NodeClaim, ended time.Time) []Count {
	why, _ := l.Why(c.UID)
	deadline, err := time.Parse(time.RFC3339, c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey])
	if err != nil || ended.Before(deadline) || !hasAnnouncedDeadline(why) {
		return nil
	}
	return []Count{{Metric: metric.DrainsOverdue, Value: 1, Labels: []string{nodePoolOf(c)}}}
}

func becameTrue(before, now *karpenter.NodeClaim, condition string) bool {
	return !before.Status.Conditions.IsTrue(condition) && now.Status.Conditions.IsTrue(condition)
}

func nodePoolOf(o metav1.Object) string     { return o.GetLabels()[karpenter.NodePoolLabelKey] }
func zoneOf(o metav1.Object) string         { return o.GetLabels()[corev1.LabelTopologyZone] }
func capacityTypeOf(o metav1.Object) string { return o.GetLabels()[karpenter.CapacityTypeLabelKey] }
