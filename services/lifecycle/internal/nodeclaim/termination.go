package nodeclaim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// excludeLabel removes the node from load balancers while it drains. excludeValue is Karpenter's
// value.
const (
	excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"
	excludeValue = "karpenter"
)

// Termination is the input for a claim that is being deleted, and for the drain before a reboot.
type Termination struct {
	// MayEvict and MayDelete report whether the pod's eviction or deletion may be tried again.
	MayEvict, MayDelete func(pod *corev1.Pod) bool
	// EvictionResult returns since when requests to remove the pod are rejected, and the error; nil
	// if the pod is not rejected.
	EvictionResult func(pod *corev1.Pod) (since time.Time, refusal error)
	// PodsNow reads the pods of the node from the API server; false if that fails.
	PodsNow func() ([]*corev1.Pod, bool)
	// Live reads the claim and its node from the API server; nil for each that does not exist or cannot be read.
	Live func() (*karpenter.NodeClaim, *corev1.Node)
	// Budgets returns the PodDisruptionBudgets of a namespace.
	Budgets func(namespace string) []*policyv1.PodDisruptionBudget
	// Attachments are the VolumeAttachments of the node.
	Attachments []*storagev1.VolumeAttachment
	// Replacement returns a NodeClaim, nil if it does not exist.
	Replacement func(name string) *karpenter.NodeClaim
	// VolumeClaim returns a PersistentVolumeClaim, nil if it does not exist.
	VolumeClaim func(cluster.Key) *corev1.PersistentVolumeClaim
}

// drainAndTerminate drains the node, waits for its volumes and requests the termination of the
// instance. Each step is persisted before the next begins.
func (v View) drainAndTerminate() []effect.Effect {
	if v.isTrue(karpenter.ConditionTypeInstanceTerminating) {
		return append(v.terminateInstance(), v.evictLatePods()...)
	}
	if v.Node == nil {
		return v.terminateWithoutNode()
	}
	if effects := v.startDrain(); len(effects) > 0 {
		return effects
	}
	deadline := v.deadline()
	plan := v.planDrain(v.Pods, deadline)
	if plan.Drained {
		plan = v.confirmDrained(plan, deadline)
	}
	effects := v.announceTermination(deadline)
	if why := v.rebalanceWait(); why != "" && !plan.Drained {
		return append(effects, v.delayDrain(plan, deadline, why)...)
	}
	effects = append(effects, v.podRemovals(plan, deadline)...)
	if !plan.Drained {
		return append(effects, v.reportDrain(plan)...)
	}
	return append(effects, v.awaitVolumes(deadline)...)
}

// evictLatePods evicts pods that kube-scheduler bound after the drain, because its cache showed the taint late, and pods of an
// instance that ended without a drain. An evicted pod is replaced at once. Otherwise Kubernetes would delete it with the
// Node, 40 s after the Node is removed.
func (v View) evictLatePods() []effect.Effect {
	if v.Node == nil {
		return nil
	}
	deadline := v.deadline()
	return v.podRemovals(v.planDrain(v.Pods, deadline), deadline)
}

// planDrain returns the plan for the node's pods.
func (v View) planDrain(pods []*corev1.Pod, deadline time.Time) termination.Plan {
	return termination.PlanDrain(termination.DrainingNode{Pods: pods, Began: v.drainStarted(), Deadline: deadline, StuckTimeout: v.stuckPodTimeout(deadline)}, v.Now)
}

// confirmDrained reads the pods of a node that seems drained from the API server. The watch may be
// late, and a pod that the cache does not contain yet would be terminated with the instance. At the
// deadline the instance is terminated even if the read fails.
func (v View) confirmDrained(plan termination.Plan, deadline time.Time) termination.Plan {
	if v.isTrue(karpenter.ConditionTypeDrained) {
		return plan
	}
	if pods, read := v.PodsNow(); read {
		return v.planDrain(pods, deadline)
	}
	plan.Drained = !deadline.IsZero() && !v.Now.Before(deadline)
	return plan
}

// startDrain returns the effects before the first eviction: the taint, the deadline, and the
// start time of the drain. The taint comes first, so that no further pods are bound.
func (v View) startDrain() []effect.Effect {
	var effects []effect.Effect
	for _, n := range v.AllNodes() {
		node, changed := TaintNode(n, false)
		if n == v.Node {
			node, changed = WithTerminationTaint(v.Claim, n)
		}
		if changed {
			effects = append(effects, effect.Update{Object: node})
		}
	}
	if v.Claim.Spec.TerminationGracePeriod != nil {
		if timed, changed := WithEarlierDeadline(v.Claim, v.gracePeriodEnd()); changed {
			return append(effects, effect.Update{Object: timed})
		}
	}
	if _, began := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDrained); !began {
		return append(effects, effect.UpdateStatus{Object: v.withUnknown(karpenter.ConditionTypeDrained, drainingReason, drainingReason)})
	}
	return effects
}

// WithTerminationTaint calls TaintNode for the claim's node, for callers that taint the node before
// the next reconcile. The node of a registered claim also needs the finalizer.
func WithTerminationTaint(c *karpenter.NodeClaim, node *corev1.Node) (*corev1.Node, bool) {
	return TaintNode(node, c.Status.Conditions.IsTrue(karpenter.ConditionTypeRegistered))
}

// TaintNode returns the node with the disrupted taint, the label that removes it from load
// balancers and, with hold, the termination finalizer; false if nothing changes. The API server
// rejects new finalizers on a node that is being deleted.
func TaintNode(node *corev1.Node, hold bool) (*corev1.Node, bool) {
	taint := karpenter.DisruptedTaint()
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect })
	hold = hold && node.DeletionTimestamp == nil && !slices.Contains(node.Finalizers, karpenter.TerminationFinalizer)
	if tainted && node.Labels[excludeLabel] == excludeValue && !hold {
		return node, false
	}
	node = node.DeepCopy()
	if !tainted {
		// A taint with this key and another effect is replaced.
		node.Spec.Taints = append(withoutTaint(node.Spec.Taints, taint.Key), taint)
	}
	node.Labels = mergeMaps(node.Labels, map[string]string{excludeLabel: excludeValue})
	if hold {
		node.Finalizers = append(node.Finalizers, karpenter.TerminationFinalizer)
	}
	return node, true
}

// announceTermination deletes the Nodes of a registered claim, so that they are shown as terminating,
// and reports the deadline of their pods. A further Node without the finalizer would be gone before it
// is drained, so it is deleted once the instance is.
func (v View) announceTermination(deadline time.Time) []effect.Effect {
	var effects []effect.Effect
	for _, node := range v.AllNodes() {
		held := node == v.Node || slices.Contains(node.Finalizers, karpenter.TerminationFinalizer)
		if held && v.isTrue(karpenter.ConditionTypeRegistered) && node.DeletionTimestamp == nil {
			effects = append(effects, effect.Delete{Kind: cluster.Nodes, Key: cluster.KeyOf(node), UID: node.UID, Why: "its NodeClaim is being deleted"})
		}
	}
	if deadline.IsZero() || !v.MayRepeat("expiring") {
		return effects
	}
	return append(effects, v.nodeAndClaimEvents(events.GracePeriodExpiring, "All pods will be deleted by %s", deadline.UTC().Format(time.RFC3339))...)
}

// nodeAndClaimEvents returns an Event on the node and on the claim.
func (v View) nodeAndClaimEvents(r events.Reason, format string, args ...any) []effect.Effect {
	return []effect.Effect{
		r.About(cluster.Nodes, v.Node, v.Now, format, args...), r.About(cluster.NodeClaims, v.Claim, v.Now, format, args...),
	}
}

// podRemovals returns the pod removals of a plan, forced deletions first.
func (v View) podRemovals(plan termination.Plan, deadline time.Time) []effect.Effect {
	var effects []effect.Effect
	for _, d := range plan.Delete {
		if v.MayDelete(d.Pod) {
			effects = append(effects, effect.DeletePod{Pod: d.Pod, GraceSeconds: d.GraceSeconds, Node: v.nodeOf(d.Pod), By: deadline, Why: v.evictionReason()})
		}
	}
	for _, pod := range plan.Evict {
		if v.MayEvict(pod) {
			effects = append(effects, effect.Evict{Pod: pod, By: deadline, Why: v.evictionReason()})
		}
	}
	return effects
}

// nodeOf returns the claim's node on which the pod runs, or nil.
func (v View) nodeOf(pod *corev1.Pod) *corev1.Node {
	for _, node := range v.AllNodes() {
		if node.Name == pod.Spec.NodeName {
			return node
		}
	}
	return nil
}

// evictionReason returns why the node is drained.
func (v View) evictionReason() string {
	if c, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDisruptionReason); c.Status == "True" {
		return c.Reason
	}
	return "Forceful Termination"
}

// drainStarted returns when the drain began. It is later than the deletion of the claim: until the
// taint, further pods may have been bound.
func (v View) drainStarted() time.Time {
	c, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDrained)
	if c.Status == "True" {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

// deadline returns when remaining pods are deleted; zero for never.
func (v View) deadline() time.Time { return Deadline(v.Claim) }

// gracePeriodEnd returns when the claim's terminationGracePeriod ends.
func (v View) gracePeriodEnd() time.Time {
	return v.Claim.DeletionTimestamp.Add(v.Claim.Spec.TerminationGracePeriod.Duration)
}

// stuckPodTimeout returns how long to wait after the deadline for pods that were deleted at it.
// After a deadline of AWS the instance is gone. After the claim's own deadline there is time to
// remove the pods' objects first.
func (v View) stuckPodTimeout(deadline time.Time) time.Duration {
	if v.Claim.Spec.TerminationGracePeriod == nil || deadline.Before(v.gracePeriodEnd().Truncate(time.Second)) {
		return 0
	}
	return termination.StuckTimeout
}
