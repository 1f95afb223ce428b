package lifecycle

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// consistencyInterval is how often a node's capacity is compared with the capacity that its claim
// expects.
const consistencyInterval = 10 * time.Minute

// consistencyKey returns the throttle key of the comparison.
func consistencyKey(c *karpenter.NodeClaim) string { return "shape/" + string(c.UID) }

// registrationView collects the input for claims before and after registration.
func (s *Service) registrationView(v nodeclaim.View, w clusterState) nodeclaim.Registration {
	j := nodeclaim.Registration{MayCheckConsistency: func() bool { return s.allowAction(consistencyKey(v.Claim), consistencyInterval) }}
	if ref := v.Claim.Spec.NodeClassRef; ref != nil {
		j.Expiring = nodeclaim.IsExpiring(v.Claim, w.classes[ref.Name], s.Now())
	}
	if v.Node != nil {
		j.Nodes, j.PodEvent = w.nodesByProviderID[v.Claim.Status.ProviderID], s.lastPodEvent(v.Claim, v.Pods)
		j.MissingDriver = s.findMissingDriver(v.Claim, v.Node)
	}
	return j
}

// findMissingDriver returns the DRA driver for whose devices the claim's node waits before it is
// initialized, or "". Without planning of devices it waits for none.
func (s *Service) findMissingDriver(c *karpenter.NodeClaim, node *corev1.Node) string {
	_, requested := c.Annotations[karpenter.DRADriversAnnotationKey]
	if !requested || node == nil || !s.Settings.PlanDRARequests || c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
		return ""
	}
	return conditions.FindMissingDriver(c, node, cluster.ListCached[*resourcev1.ResourceSlice](s.Cache, cluster.ResourceSlices))
}

// withPartition returns the claim with the placement group partition of its instance, for which
// the node's registration waits.
func withPartition(b garbagecollection.BoundClaim) *karpenter.NodeClaim {
	c := b.Claim.DeepCopy()
	c.Labels[karpenter.LabelPlacementGroupPartition] = strconv.Itoa(int(b.Instance.Partition))
	return c
}

// lastPodEvent returns when pods were last added to or removed from the claim's node. It is kept
// in memory until the claim's status contains it, even if a write fails.
func (s *Service) lastPodEvent(c *karpenter.NodeClaim, pods []*corev1.Pod) time.Time {
	uid := string(c.UID)
	s.podTrackers[uid] = s.podTrackers[uid].Observe(pods, s.Now())
	return s.podTrackers[uid].Last
}
