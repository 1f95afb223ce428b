package claim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/door"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/drain"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// excludeLabel takes the node out of load balancers while it drains (B166).
const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"

// Leaving is what only a claim that is being deleted looks at.
type Leaving struct {
	// MayEvict says whether the pod's eviction may be tried again.
	MayEvict func(pod *corev1.Pod) bool
}

// going ends a claim that is being deleted: drain, terminate, and only when EC2
// shows the instance terminated, let go.
func (v View) going() []effect.Effect {
	if !slices.Contains(v.Claim.Finalizers, karpenter.TerminationFinalizer) {
		return nil
	}
	switch {
	case v.Gone:
		return v.letGo()
	case v.Claim.Status.ProviderID != "":
		return v.drainAndTerminate()
	case !door.Admitted(v.Claim) || v.Refused == SpentMark:
		// It was never launched, or cannot be any more.
		return v.release()
	default:
		// Its launch may still be under way. An instance that comes is bound and
		// then terminated; two inventories that show none make it Gone.
		return nil
	}
}

// letGo removes what is left in Kubernetes of an instance that is no more.
func (v View) letGo() []effect.Effect {
	if v.Node == nil {
		return v.release()
	}
	if v.Node.DeletionTimestamp == nil {
		return []effect.Effect{effect.Delete{Kind: cluster.Nodes, Key: cluster.KeyOf(v.Node), UID: v.Node.UID, Why: "instance gone"}}
	}
	if !slices.Contains(v.Node.Finalizers, karpenter.TerminationFinalizer) {
		return nil
	}
	node := v.Node.DeepCopy()
	node.Finalizers = without(node.Finalizers, karpenter.TerminationFinalizer)
	return []effect.Effect{effect.Update{Object: node}}
}

// release takes the finalizer off the claim.
func (v View) release() []effect.Effect {
	claim := v.Claim.DeepCopy()
	claim.Finalizers = without(claim.Finalizers, karpenter.TerminationFinalizer)
	return []effect.Effect{effect.Update{Object: claim}}
}

// drainAndTerminate empties the node and then has the instance ended.
func (v View) drainAndTerminate() []effect.Effect {
	if v.is(karpenter.ConditionTypeInstanceTerminating) {
		return v.terminate()
	}
	if v.Node == nil {
		return v.drained()
	}
	if node, changed := disrupted(v.Node); changed {
		return []effect.Effect{effect.Update{Object: node}}
	}
	deadline, marked := v.deadline()
	if marked != nil {
		return []effect.Effect{effect.Update{Object: marked}}
	}
	plan := drain.Next(v.Pods, v.Claim.DeletionTimestamp.Time, deadline, v.Now)
	if plan.Drained {
		return v.drained()
	}
	var effects []effect.Effect
	for _, d := range plan.Delete {
		effects = append(effects, effect.DeletePod{Pod: d.Pod, GraceSeconds: d.GraceSeconds})
	}
	for _, pod := range plan.Evict {
		if v.MayEvict(pod) {
			effects = append(effects, effect.Evict{Pod: pod})
		}
	}
	return effects
}

// drained persists that the instance may end, before that is asked for.
func (v View) drained() []effect.Effect {
	claim := v.with(karpenter.ConditionTypeDrained)
	claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
		Type: karpenter.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue,
		Reason: karpenter.ConditionTypeInstanceTerminating, ObservedGeneration: claim.Generation,
	}, v.Now)
	return []effect.Effect{effect.UpdateStatus{Object: claim}}
}

// terminate asks for the end of the instance, again and again while the
// finalizer stands.
func (v View) terminate() []effect.Effect {
	id, err := v.Claim.Instance()
	if err != nil || !v.MayAsk("terminate") {
		return nil
	}
	return []effect.Effect{effect.Send{Body: event.TerminateRequested{
		InstanceID: id.InstanceID, Claim: v.Claim.Name, ClaimUID: string(v.Claim.UID), Reason: "its NodeClaim is being deleted",
	}}}
}

// disrupted is the node with the taint and the label of B166.
func disrupted(node *corev1.Node) (*corev1.Node, bool) {
	taint := karpenter.DisruptedTaint()
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect })
	if tainted && node.Labels[excludeLabel] != "" {
		return node, false
	}
	node = node.DeepCopy()
	node.Spec.Taints = withTaint(node.Spec.Taints, taint)
	node.Labels = merge(node.Labels, map[string]string{excludeLabel: "karpenter"})
	return node, true
}

// deadline is when the drain ends by force. Where the claim has a
// terminationGracePeriod and no time yet, the claim with the time comes back:
// it is persisted so that a restart does not begin again (B171).
func (v View) deadline() (time.Time, *karpenter.NodeClaim) {
	key := karpenter.NodeClaimTerminationTimestampAnnotationKey
	if at, err := time.Parse(time.RFC3339, v.Claim.Annotations[key]); err == nil {
		return at, nil
	}
	if v.Claim.Spec.TerminationGracePeriod == nil {
		return time.Time{}, nil
	}
	claim := v.Claim.DeepCopy()
	at := claim.DeletionTimestamp.Add(claim.Spec.TerminationGracePeriod.Duration)
	claim.Annotations = merge(claim.Annotations, map[string]string{key: at.UTC().Format(time.RFC3339)})
	return time.Time{}, claim
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
