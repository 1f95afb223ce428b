package nodepool

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Member is a claim and its node. Either may be nil: a claim may have no node yet, and a node's
// claim may have been removed by a user.
type Member struct {
	Claim *karpenter.NodeClaim
	Node  *corev1.Node
}

// reportedResources returns the resources that a status contains even if they are zero.
func reportedResources() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage, karpenter.ResourceNodes,
	}
}

// Usage sums the resources of the running members.
func Usage(members []Member) corev1.ResourceList {
	sum := corev1.ResourceList{}
	nodes := int64(0)
	for _, m := range members {
		if !m.isRunning() {
			continue
		}
		nodes++
		m.forEachResource(func(name corev1.ResourceName, q resource.Quantity) {
			total, begun := sum[name]
			if !begun {
				total = q.DeepCopy()
			} else {
				total.Add(q)
			}
			sum[name] = total
		})
	}
	sum[karpenter.ResourceNodes] = *resource.NewQuantity(nodes, resource.DecimalSI)
	for _, name := range reportedResources() {
		if _, ok := sum[name]; !ok {
			sum[name] = resource.MustParse("0")
		}
	}
	return sum
}

// isRunning reports whether the member has an instance that is not being removed.
func (m Member) isRunning() bool {
	if m.Claim == nil {
		return m.Node.DeletionTimestamp == nil
	}
	return m.Claim.Status.ProviderID != "" && m.Claim.DeletionTimestamp == nil &&
		!m.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating)
}

// forEachResource calls add with the member's resources: the node's capacity once it is
// initialized, and until then the claim's capacity where the node reports nothing or zero.
func (m Member) forEachResource(add func(corev1.ResourceName, resource.Quantity)) {
	var reported, estimated corev1.ResourceList
	if m.Node != nil {
		reported = m.Node.Status.Capacity
	}
	if m.Claim != nil && (m.Node == nil || m.Node.Labels[karpenter.NodeInitializedLabelKey] != "true") {
		estimated = m.Claim.Status.Capacity
	}
	for name, q := range reported {
		if better, ok := estimated[name]; ok && q.IsZero() {
			q = better
		}
		add(name, q)
	}
	for name, q := range estimated {
		if _, ok := reported[name]; !ok {
			add(name, q)
		}
	}
}
