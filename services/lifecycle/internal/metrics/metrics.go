// Package metrics tells what happened to NodeClaims and their nodes between two looks,
// in the words of Karpenter's metrics.
//
// The idea: what is counted is read off the objects, like all that lifecycle does, and
// not where a write was made: a write may be made twice, or by another. The invariant:
// each step of a claim's life counts in one look alone.
package metrics

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ChangeKind is one of the things that are counted.
type ChangeKind string

// What is counted, with its labels in brackets.
const (
	// Created is a claim that is new [reason, NodePool, whether minValues were relaxed].
	Created ChangeKind = "claims-created"
	// Registered is a claim whose node registered [NodePool, zone].
	Registered ChangeKind = "nodes-created"
	// Initialized is how long a claim took until its node was initialized, in seconds
	// [NodePool].
	Initialized ChangeKind = "initialized"
	// Disrupted is a claim that lifecycle let go [reason, NodePool, capacity type].
	Disrupted ChangeKind = "claims-disrupted"
	// Terminated is a claim that is gone [NodePool, capacity type, zone].
	Terminated ChangeKind = "claims-terminated"
	// ClaimTermination is how long it took from its deletion, in seconds [NodePool].
	ClaimTermination ChangeKind = "claim-termination"
	// NodeTerminated is a node that is gone [NodePool, zone].
	NodeTerminated ChangeKind = "nodes-terminated"
	// NodeTermination is how long it took from its deletion, in seconds [NodePool].
	NodeTermination ChangeKind = "node-termination"
	// Overdue is a node that was not drained when what AWS announced came [NodePool].
	Overdue ChangeKind = "overdue"
)

// Count is one thing that happened.
type Count struct {
	Kind   ChangeKind
	Value  float64
	Labels []string
	// Claim is whose it is.
	Claim types.UID
}

// ClaimAndNode is what one look saw of a claim. The node is nil where there is none.
type ClaimAndNode struct {
	Claim *karpenter.NodeClaim
	Node  *corev1.Node
}

// Snapshots are two looks, one after the other, by the claims' UIDs.
type Snapshots struct {
	Before, Now map[types.UID]ClaimAndNode
	// At is when the second began.
	At time.Time
	// Why is what lifecycle deleted a claim for; false where it did not.
	Why func(uid types.UID) (string, bool)
}

// CountChanges is what happened between them, in the order of the claims' names.
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
			add(uid, l.created(now.Claim))
			add(uid, l.steps(ClaimAndNode{Claim: &karpenter.NodeClaim{}}, now)...)
		case before != now:
			add(uid, l.steps(before, now)...)
		}
	}
	for uid, before := range l.Before {
		if _, still := l.Now[uid]; !still {
			add(uid, l.gone(before)...)
		}
	}
	slices.SortFunc(all, func(a, b Count) int {
		return slices.Compare(append([]string{string(a.Kind)}, a.Labels...), append([]string{string(b.Kind)}, b.Labels...))
	})
	return all
}

// created is told with the reason of the proposal that the claim is a replacement for.
func (l Snapshots) created(c *karpenter.NodeClaim) Count {
	reason := "provisioned"
	for _, s := range l.Now {
		if p := disruption.ActingProposal(s.Claim); p != nil && slices.Contains(p.Replacements, c.Name) {
			reason = karpenter.DisruptionReason(p.Reason).Label()
			break
		}
	}
	relaxed := c.Annotations[karpenter.NodeClaimMinValuesRelaxedAnnotationKey] == "true"
	return Count{Kind: Created, Value: 1, Labels: []string{reason, pool(c), strconv.FormatBool(relaxed)}}
}

// steps are the conditions that came true, and the deletion that began.
func (l Snapshots) steps(before, now ClaimAndNode) []Count {
	var all []Count
	c := now.Claim
	if came(before.Claim, c, karpenter.ConditionTypeRegistered) {
		all = append(all, Count{Kind: Registered, Value: 1, Labels: []string{pool(c), zone(c)}})
	}
	if came(before.Claim, c, karpenter.ConditionTypeInitialized) {
		condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
		all = append(all, Count{Kind: Initialized, Value: condition.LastTransitionTime.Sub(c.CreationTimestamp.Time).Seconds(), Labels: []string{pool(c)}})
	}
	if before.Claim.DeletionTimestamp == nil && c.DeletionTimestamp != nil {
		all = append(all, l.disrupted(c)...)
	}
	if came(before.Claim, c, karpenter.ConditionTypeDrained) {
		condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeDrained)
		all = append(all, l.overdue(c, condition.LastTransitionTime.Time)...)
	}
	if before.Node != nil && now.Node == nil {
		all = append(all, l.left(before)...)
	}
	return all
}

func (l Snapshots) disrupted(c *karpenter.NodeClaim) []Count {
	why, ours := l.Why(c.UID)
	if !ours {
		return nil // Somebody else deleted it, which Karpenter does not count either.
	}
	return []Count{{Kind: Disrupted, Value: 1, Labels: []string{ReasonLabel(why), pool(c), capacityType(c)}}}
}

// gone is the end of a claim, and of its node where that was not seen before.
func (l Snapshots) gone(before ClaimAndNode) []Count {
	c := before.Claim
	all := []Count{{Kind: Terminated, Value: 1, Labels: []string{pool(c), capacityType(c), zone(c)}}}
	if c.DeletionTimestamp != nil {
		all = append(all, Count{Kind: ClaimTermination, Value: l.At.Sub(c.DeletionTimestamp.Time).Seconds(), Labels: []string{pool(c)}})
	} else {
		all = append(all, l.disrupted(c)...)
	}
	if before.Node == nil {
		return all
	}
	if !c.Status.Conditions.True(karpenter.ConditionTypeDrained) {
		all = append(all, l.overdue(c, l.At)...)
	}
	return append(all, l.left(before)...)
}

// left is the end of a node.
func (l Snapshots) left(before ClaimAndNode) []Count {
	c := before.Claim
	all := []Count{{Kind: NodeTerminated, Value: 1, Labels: []string{pool(c), zone(c)}}}
	if at := before.Node.DeletionTimestamp; at != nil {
		all = append(all, Count{Kind: NodeTermination, Value: l.At.Sub(at.Time).Seconds(), Labels: []string{pool(c)}})
	}
	return all
}

// overdue tells of a drain that ended only because the time was over that AWS gave. A
// pool's own terminationGracePeriod is a wish, and not told of.
func (l Snapshots) overdue(c *karpenter.NodeClaim, ended time.Time) []Count {
	why, _ := l.Why(c.UID)
	deadline, err := time.Parse(time.RFC3339, c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey])
	if err != nil || ended.Before(deadline) || !announced(why) {
		return nil
	}
	return []Count{{Kind: Overdue, Value: 1, Labels: []string{pool(c)}}}
}

func came(before, now *karpenter.NodeClaim, condition string) bool {
	return !before.Status.Conditions.True(condition) && now.Status.Conditions.True(condition)
}

func pool(o metav1.Object) string         { return o.GetLabels()[karpenter.NodePoolLabelKey] }
func zone(o metav1.Object) string         { return o.GetLabels()[corev1.LabelTopologyZone] }
func capacityType(o metav1.Object) string { return o.GetLabels()[karpenter.CapacityTypeLabelKey] }
