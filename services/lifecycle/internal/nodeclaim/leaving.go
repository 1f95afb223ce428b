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

// excludeLabel takes the node out of load balancers while it drains, and
// excludeValue is what upstream sets it to.
const (
	excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"
	excludeValue = "karpenter"
)

// Leaving is what only a claim that is being deleted looks at.
type Leaving struct {
	// MayEvict says whether the pod's eviction may be tried again, and MayDelete
	// whether its deletion may.
	MayEvict, MayDelete func(pod *corev1.Pod) bool
	// Answer is what the last request to remove a pod came to, nil where it was not
	// refused, and since when it is.
	Answer func(pod *corev1.Pod) (since time.Time, refusal error)
	// PodsNow reads the pods of the node as they are now; false when it cannot.
	PodsNow func() ([]*corev1.Pod, bool)
	// Budgets gives the PodDisruptionBudgets of a namespace.
	Budgets func(namespace string) []*policyv1.PodDisruptionBudget
	// Attachments are the volumes that are attached to the node.
	Attachments []*storagev1.VolumeAttachment
	// Replacement finds a NodeClaim; nil when it is not there.
	Replacement func(name string) *karpenter.NodeClaim
	// VolumeClaim finds a PersistentVolumeClaim; nil when it is not there.
	VolumeClaim func(cluster.Key) *corev1.PersistentVolumeClaim
}

// drainAndTerminate empties the node, waits for its volumes and then has the
// instance ended. Each step is written down before the next begins.
func (v View) drainAndTerminate() []effect.Effect {
	if v.is(karpenter.ConditionTypeInstanceTerminating) {
		return v.terminate()
	}
	if v.Node == nil {
		return v.unjoined()
	}
	if effects := v.begin(); len(effects) > 0 {
		return effects
	}
	deadline := v.deadline()
	plan := v.next(v.Pods, deadline)
	if plan.Drained {
		plan = v.surely(plan, deadline)
	}
	effects := v.announce(deadline)
	if why := v.held(); why != "" && !plan.Drained {
		return append(effects, v.hold(plan, deadline, why)...)
	}
	effects = append(effects, v.removals(plan, deadline)...)
	if !plan.Drained {
		return append(effects, v.draining(plan)...)
	}
	return append(effects, v.drained(deadline)...)
}

// next is what to do with the node's pods.
func (v View) next(pods []*corev1.Pod, deadline time.Time) termination.Plan {
	return termination.PlanDrain(termination.DrainingNode{Pods: pods, Began: v.began(), Deadline: deadline, Patience: v.patience(deadline)}, v.Now)
}

// surely looks once more at the pods of a node that seems drained, as they are now:
// a watch of pods may be behind by more than any time that is waited, and what it
// has not told of would end with the instance. At the deadline the instance ends
// whatever can be read.
func (v View) surely(plan termination.Plan, deadline time.Time) termination.Plan {
	if v.is(karpenter.ConditionTypeDrained) {
		return plan
	}
	if pods, read := v.PodsNow(); read {
		return v.next(pods, deadline)
	}
	plan.Drained = !deadline.IsZero() && !v.Now.Before(deadline)
	return plan
}

// begin is what comes before the first eviction: the taint, the deadline, and the
// time at which the drain begins. The taint is first: each pod that is bound
// meanwhile is one more to move.
func (v View) begin() []effect.Effect {
	var effects []effect.Effect
	if node, changed := v.disrupted(); changed {
		effects = append(effects, effect.Update{Object: node})
	}
	switch _, began := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDrained); {
	case v.deadline().IsZero() && v.Claim.Spec.TerminationGracePeriod != nil:
		timed, _ := Sooner(v.Claim, v.graceEnds())
		return append(effects, effect.Update{Object: timed})
	case !began:
		return append(effects, effect.UpdateStatus{Object: v.unknown(karpenter.ConditionTypeDrained, drainingReason, drainingReason)})
	}
	return effects
}

// disrupted is the claim's node as Tainted makes it. It is held once it is
// registered.
func (v View) disrupted() (*corev1.Node, bool) {
	return Tainted(v.Node, v.is(karpenter.ConditionTypeRegistered))
}

// Tainted is the node with the disrupted taint and the label that keeps load balancers away, and, if it is to be
// held, with the finalizer without which deleting it would take it away at once.
// The API server takes no finalizer for a node that is being deleted already.
func Tainted(node *corev1.Node, hold bool) (*corev1.Node, bool) {
	taint := karpenter.DisruptedTaint()
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect })
	hold = hold && node.DeletionTimestamp == nil && !slices.Contains(node.Finalizers, karpenter.TerminationFinalizer)
	if tainted && node.Labels[excludeLabel] == excludeValue && !hold {
		return node, false
	}
	node = node.DeepCopy()
	if !tainted {
		// One of the key with another effect goes.
		node.Spec.Taints = append(withoutTaint(node.Spec.Taints, taint.Key), taint)
	}
	node.Labels = merge(node.Labels, map[string]string{excludeLabel: excludeValue})
	if hold {
		node.Finalizers = append(node.Finalizers, karpenter.TerminationFinalizer)
	}
	return node, true
}

// announce deletes the Node of a registered claim, so that everybody sees it going,
// and says until when its pods may stay.
func (v View) announce(deadline time.Time) []effect.Effect {
	var effects []effect.Effect
	if v.is(karpenter.ConditionTypeRegistered) && v.Node.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.Nodes, Key: cluster.KeyOf(v.Node), UID: v.Node.UID, Why: "its NodeClaim is being deleted"})
	}
	if deadline.IsZero() || !v.MayAsk("expiring") {
		return effects
	}
	return append(effects, v.both(events.GracePeriodExpiring, "All pods will be deleted by %s", deadline.UTC().Format(time.RFC3339))...)
}

// both says a remark on the node and on the claim.
func (v View) both(r events.Reason, format string, args ...any) []effect.Effect {
	return []effect.Effect{
		r.About(cluster.Nodes, v.Node, v.Now, format, args...), r.About(cluster.NodeClaims, v.Claim, v.Now, format, args...),
	}
}

// removals are the pods of a plan, those whose grace must begin first.
func (v View) removals(plan termination.Plan, deadline time.Time) []effect.Effect {
	var effects []effect.Effect
	for _, d := range plan.Delete {
		if v.MayDelete(d.Pod) {
			effects = append(effects, effect.DeletePod{Pod: d.Pod, GraceSeconds: d.GraceSeconds, By: deadline})
		}
	}
	for _, pod := range plan.Evict {
		if v.MayEvict(pod) {
			effects = append(effects, effect.Evict{Pod: pod, By: deadline, Why: v.reason()})
		}
	}
	return effects
}

// reason is why the node is drained.
func (v View) reason() string {
	if c, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDisruptionReason); c.Status == "True" {
		return c.Reason
	}
	return "Forceful Termination"
}

// began is when the drain began, which is written down: not when the claim was
// deleted, for between that and the taint pods may have been bound.
func (v View) began() time.Time {
	c, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDrained)
	if c.Status == "True" {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

// deadline is when the drain ends by force; zero for never.
func (v View) deadline() time.Time { return Deadline(v.Claim) }

// graceEnds is when the claim's own terminationGracePeriod ends.
func (v View) graceEnds() time.Time {
	return v.Claim.DeletionTimestamp.Add(v.Claim.Spec.TerminationGracePeriod.Duration)
}

// patience is how long past the deadline pods are waited for that were deleted at
// it. Where the deadline is AWS's, the machine goes then whatever we do; where it
// is the claim's own, the pods' names are let go in order.
func (v View) patience(deadline time.Time) time.Duration {
	if v.Claim.Spec.TerminationGracePeriod == nil || deadline.Before(v.graceEnds().Truncate(time.Second)) {
		return 0
	}
	return termination.Stuck
}
