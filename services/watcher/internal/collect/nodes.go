package collect

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// nominatedAnnotation is the time until which lifecycle expects pods on a claim.
const nominatedAnnotation = "joist.sh/nominated-until"

// joinNodes joins nodes and claims by provider ID. A claim without a node becomes a node of its
// own, after all real nodes, unless it is another provider's. describe is called with each real node
// and its claim, which may be nil or another provider's.
func joinNodes(nodes []*corev1.Node, all []*karpenter.NodeClaim, describe func(*corev1.Node, *karpenter.NodeClaim) planning.Node) []planning.Node {
	claims, joined := claimsByInstance(all), make(map[string]bool, len(all))
	var out []planning.Node
	if most := max(len(nodes), len(all)); most > 0 {
		// Most claims have a node, so a small reserve is enough for claims without one.
		out = make([]planning.Node, 0, most+most/64)
	}
	for _, node := range nodes {
		claim := claims[node.Spec.ProviderID]
		if claim != nil {
			joined[claim.Name] = true
		}
		out = append(out, describe(node, claim))
	}
	for _, claim := range all {
		if owner := claims[claim.Status.ProviderID]; !joined[claim.Name] && claim.IsManaged() && (owner == nil || owner == claim) {
			out = append(out, describeClaim(claim))
		}
	}
	return out
}

// claimsByInstance returns the claim of each instance. Two claims have the same instance only if a
// user edited one; then the older one owns it. The younger one never gets a node, so it provides no
// capacity.
func claimsByInstance(all []*karpenter.NodeClaim) map[string]*karpenter.NodeClaim {
	out := make(map[string]*karpenter.NodeClaim, len(all))
	for _, claim := range all {
		id := claim.Status.ProviderID
		if id == "" {
			continue
		}
		if other := out[id]; other == nil || claim.CreationTimestamp.Before(&other.CreationTimestamp) {
			out[id] = claim
		}
	}
	return out
}

// podsByNode groups by node the pods that use resources.
func (c *collector) podsByNode() map[string][]*corev1.Pod {
	bound := map[string][]*corev1.Pod{}
	for _, pod := range c.pods {
		if pod.Spec.NodeName != "" && !isFinished(pod) {
			bound[pod.Spec.NodeName] = append(bound[pod.Spec.NodeName], pod)
		}
	}
	return bound
}

// describeNode describes a node that has joined. A node of another provider, such as EKS Auto Mode, is
// described like a node without a claim: pods may use its capacity, but Joist does not disrupt it.
func (c *collector) describeNode(node *corev1.Node, claim *karpenter.NodeClaim, pods []*corev1.Pod) planning.Node {
	out := planning.Node{
		Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints, Created: node.CreationTimestamp.UTC(),
		Allocatable: node.Status.Allocatable, Capacity: node.Status.Capacity,
		Launched: true, Registered: true, Initialized: true,
	}
	out.Ready, out.ReadySince = readySince(node)
	if claim != nil && claim.IsManaged() {
		addClaim(&out, claim)
		if !out.Registered {
			out.Labels = mergeLabels(claim.Labels, node.Labels)
		}
		if !out.Initialized || len(out.Allocatable) == 0 {
			// A kubelet that has just started reports no resources, and a device plugin that has
			// not started reports none of its own. Use the claim's values for these.
			out.Allocatable = fillZeros(out.Allocatable, claim.Status.Allocatable)
			out.Capacity = fillZeros(out.Capacity, claim.Status.Capacity)
		}
	}
	disrupted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey })
	// The taint alone does not remove the node while its claim exists: disruption first launches
	// the nodes that its pods need, or rolls back.
	leaves := out.MarkedForDeletion || node.DeletionTimestamp != nil || disrupted && claim == nil
	out.MarkedForDeletion = leaves || disrupted
	out.DoNotDisrupt = out.DoNotDisrupt || node.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true"
	if leaves {
		c.leaving[node.Name] = out.Deadline
	}
	podspec.SetBoundPods(&out, pods, c.labelKeys, c.mounts.Of, c.claims)
	c.addAttachments(&out, pods)
	return out
}

// describeClaim describes a claim whose node has not joined.
func describeClaim(claim *karpenter.NodeClaim) planning.Node {
	out := planning.Node{
		Name: claim.Name, Labels: claim.Labels, Created: claim.CreationTimestamp.UTC(),
		Taints:      slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints),
		Allocatable: claim.Status.Allocatable, Capacity: claim.Status.Capacity,
	}
	addClaim(&out, claim)
	// A claim gets its provider ID before its labels, and its zone is unknown until then. Treat it
	// as planned for that time.
	out.Launched = out.Launched && claim.Labels[corev1.LabelInstanceTypeStable] != ""
	if launched, ok := claim.Status.Conditions.Get(karpenter.ConditionTypeLaunched); ok && out.Launched {
		out.LaunchedAt = launched.LastTransitionTime.UTC()
	}
	if !out.Launched {
		// Use the planned requests, so that exactly the planned pods fit again.
		out.Allocatable = claim.Spec.Resources.Requests
		out.Requirements = claim.Spec.Requirements
		// Limits count the largest instance type that may be launched for the claim.
		out.Capacity = launchspec.ReadCeiling(claim)
	}
	if launchspec.WaitsUnplanned(claim) && claim.Annotations[launchspec.RefusalAnnotation] != "" {
		out.Allocatable = nil // A user created the claim, and it cannot be launched.
	}
	return out
}

// addClaim adds the fields that come from the claim.
func addClaim(out *planning.Node, claim *karpenter.NodeClaim) {
	conditions := claim.Status.Conditions
	out.Claim, out.ClaimUID, out.NodePool = claim.Name, string(claim.UID), claim.Labels[karpenter.NodePoolLabelKey]
	out.Image = claim.Status.ImageID
	out.PricePerHour, _ = planning.ReadPrice(claim)
	if id, err := claim.Instance(); err == nil {
		out.Instance = id.InstanceID
	}
	out.Launched = claim.Status.ProviderID != ""
	out.Registered = conditions.IsTrue(karpenter.ConditionTypeRegistered)
	out.Initialized = conditions.IsTrue(karpenter.ConditionTypeInitialized)
	if initialized, ok := conditions.Get(karpenter.ConditionTypeInitialized); ok && out.Initialized {
		out.InitializedAt = initialized.LastTransitionTime.UTC()
	}
	if !out.Initialized {
		out.ExpectedPods = planning.ParseExpectedPods(claim.Annotations[planning.ExpectedPodsAnnotation])
	}
	if out.Rebooting = claim.IsRebooting(); out.Rebooting || !out.Initialized {
		out.StartupTaints = claim.Spec.StartupTaints
	}
	out.Terminating = conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating)
	out.MarkedForDeletion = claim.DeletionTimestamp != nil || out.Terminating
	out.Deadline = parseTime(claim.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey])
	out.NominatedUntil = parseTime(claim.Annotations[nominatedAnnotation])
	if !claim.Status.LastPodEventTime.IsZero() {
		out.LastPodEvent = claim.Status.LastPodEventTime.UTC()
	}
	out.DoNotDisrupt = claim.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true"
	if after := claim.Spec.ExpireAfter; !after.IsNever() {
		out.ExpiresAt = claim.CreationTimestamp.Add(*after.Duration).UTC()
	}
	out.HasTerminationGracePeriod = claim.Spec.TerminationGracePeriod != nil
	if drifted, ok := conditions.Get(karpenter.ConditionTypeDrifted); ok && drifted.Status == metav1.ConditionTrue {
		out.Drift = &planning.Drift{Reason: drifted.Reason, Since: drifted.LastTransitionTime.UTC()}
	}
	out.Proposal = planning.ReadProposal(claim)
}

// readySince reports whether the node is ready, and since when.
func readySince(node *corev1.Node) (bool, time.Time) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return true, c.LastTransitionTime.UTC()
		}
	}
	return false, time.Time{}
}

func parseTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

func mergeLabels(under, over map[string]string) map[string]string {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}

// fillZeros replaces each amount that the node reports as zero, or not at all, by the claim's
// (Karpenter: pkg/controllers/state/statenode.go, Allocatable).
func fillZeros(node, claim corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(node)
	for name, amount := range claim {
		if reported := out[name]; reported.IsZero() {
			if out == nil {
				out = corev1.ResourceList{}
			}
			out[name] = amount
		}
	}
	return out
}
