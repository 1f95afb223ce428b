package nodeclaim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// issuanceTimeout is how long a reboot is requested, and recoveryTimeout how long its node may need to
	// be ready with a new boot ID. Karpenter: pkg/controllers/nodeclaim/reboot/controller.go.
	issuanceTimeout, recoveryTimeout = 5 * time.Minute, 20 * time.Minute
	// settleMargin is how much longer than requests are valid the node keeps its taint: the launcher may call
	// EC2 a moment after a request expired, and a reconcile may send one just before it sees the answer.
	settleMargin = 30 * time.Second
	// requestWindow is how long the first request, and each repeated one, may be late, and sendTime how long after its
	// decision it may be sent. The rest of settleMargin is the launcher's.
	requestWindow = 30 * time.Second
	sendTime      = 10 * time.Second
)

// RebootFailed begins the reason why a claim is deleted whose node could not be rebooted.
const RebootFailed = "reboot failed: "

// continueReboot returns the next step of a reboot. Each step is persisted before the next begins: the taint,
// the drain, the boot ID, EC2's answer, the new boot, the end.
func (v View) continueReboot() []effect.Effect {
	limit, err := rebootGracePeriod(v.Claim)
	progress, isIssued := readProgress(v.Claim), v.rebootCondition().Reason == karpenter.RebootIssuedReason
	switch deadline, why := v.rebootDeadline(progress, isIssued); {
	case v.isRebootProposed():
		return nil // The reboot begins once its proposal is removed.
	case progress.Failure != "":
		return v.deleteFailedReboot(progress.Failure)
	case !deadline.IsZero() && v.Now.After(deadline):
		return v.markFailedReboot(limit, why)
	case progress.Refusal != "" && !isIssued:
		return v.markFailedReboot(limit, "reboot rejected by the cloud provider: "+progress.Refusal)
	case !progress.Issued.IsZero() && !isIssued: // Also without a node, so that the recovery has a limit.
		return []effect.Effect{effect.UpdateStatus{Object: v.withIssuedReboot()}}
	case v.Node == nil:
		return nil
	case isIssued:
		return v.awaitRecovery(progress)
	case err != nil:
		return v.refuseReboot("invalid reboot request: " + err.Error())
	default:
		return v.issueReboot(progress, limit)
	}
}

// rebootDeadline returns when the current step of the reboot fails, and the message of the failure; the
// zero time for never. A drain has its own limit, unless the node is gone.
func (v View) rebootDeadline(p rebootProgress, isIssued bool) (time.Time, string) {
	const notIssued = "reboot was not issued within the issuance timeout"
	switch {
	case isIssued:
		if at := v.rebootIssued(p); !at.IsZero() {
			return at.Add(recoveryTimeout), "node did not recover within the observation window"
		}
		return time.Time{}, ""
	case !p.Issued.IsZero():
		return time.Time{}, ""
	case !p.Since.IsZero():
		return p.Since.Add(issuanceTimeout), notIssued
	case v.Node == nil:
		return v.rebootRequested().Add(issuanceTimeout), notIssued
	default:
		return time.Time{}, ""
	}
}

// issueReboot taints and drains the node, records its boot ID and requests the reboot until it is accepted. A
// boot ID that has changed means that EC2 has rebooted the node although its answer was lost.
func (v View) issueReboot(p rebootProgress, limit *time.Duration) []effect.Effect {
	if node, changes := v.withRebootTaint(); changes {
		if !v.isRebootCurrent() {
			return nil // Nothing would remove the taint if the reboot has ended.
		}
		return []effect.Effect{effect.Update{Object: node}}
	}
	boot, recorded := v.Claim.Annotations[karpenter.RebootPreBootIDAnnotationKey]
	switch {
	case !recorded:
		if effects, drained := v.drainForReboot(limit); !drained {
			return effects
		}
		claim := v.Claim.DeepCopy()
		writeProgress(claim, rebootProgress{Since: v.Now.Truncate(time.Second)})
		claim.Annotations[karpenter.RebootPreBootIDAnnotationKey] = v.Node.Status.NodeInfo.BootID
		return []effect.Effect{effect.Update{Object: claim}}
	case v.Node.Status.NodeInfo.BootID != boot, p.Since.IsZero():
		claim := v.Claim.DeepCopy()
		if p.Since.IsZero() { // Karpenter recorded the boot ID.
			writeProgress(claim, rebootProgress{Since: v.Now.Truncate(time.Second)})
		} else {
			RecordRebootAnswer(claim, "", v.Now.Truncate(time.Second))
		}
		return []effect.Effect{effect.Update{Object: claim}}
	default:
		return v.sendRebootRequest(p)
	}
}

// drainForReboot evicts the node's pods, and deletes none. It reports whether the drain has ended: pods that
// remain at its limit stay on the node during the reboot. A node that seems drained may have pods that the cache does
// not contain yet, so they are read from the API server.
func (v View) drainForReboot(limit *time.Duration) ([]effect.Effect, bool) {
	var deadline time.Time
	if limit != nil {
		deadline = v.rebootRequested().Add(max(*limit, termination.MinDrainTime))
		if *limit == 0 || !v.Now.Before(deadline) {
			return nil, true
		}
	}
	plan := termination.PlanDrain(termination.DrainingNode{Pods: v.Pods, Began: v.rebootRequested()}, v.Now)
	if plan.Drained {
		pods, read := v.PodsNow()
		if !read {
			return nil, false
		}
		plan = termination.PlanDrain(termination.DrainingNode{Pods: pods, Began: v.rebootRequested()}, v.Now)
	}
	return v.podRemovals(plan, deadline), plan.Drained
}

// sendRebootRequest requests the reboot until the answer, again when the last request has expired: more requests
// could interrupt the boot. It waits while the zone is shifted away, and while the cache does not contain the last
// changes: the node may have been rebooted and be in use again.
func (v View) sendRebootRequest(p rebootProgress) []effect.Effect {
	id, err := v.Claim.Instance()
	isDue := v.Now.Sub(p.Since)%event.RebootRequestedType.TTL() < requestWindow
	if err != nil || !isDue || v.ZoneShifted || !v.MayRepeat("reboot") {
		return nil
	}
	if !v.isRebootCurrent() {
		v.Retry("reboot")
		return nil
	}
	return []effect.Effect{effect.Send{By: v.Now.Add(sendTime), Body: event.RebootRequested{
		InstanceID: id.InstanceID, Claim: v.Claim.Name, ClaimUID: string(v.Claim.UID), Operation: RebootOperation(v.Claim),
	}}}
}

// withIssuedReboot returns the claim of an accepted reboot. Its node has to become initialized again.
func (v View) withIssuedReboot() *karpenter.NodeClaim {
	claim := v.Claim.DeepCopy()
	condition := v.rebootCondition()
	condition.Reason = karpenter.RebootIssuedReason
	claim.Status.Conditions = conditions.With(claim, condition, v.Now)
	claim.Status.Conditions = conditions.With(claim, metav1.Condition{
		Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: karpenter.ConditionTypeRebooting, Message: "node is rebooting",
	}, v.Now)
	return claim
}

// awaitRecovery waits until the node is ready with a new boot ID. The taint stays until all requests have
// expired, because a duplicate request would reboot the node again.
func (v View) awaitRecovery(p rebootProgress) []effect.Effect {
	if v.Node.Labels[karpenter.NodeInitializedLabelKey] != "" {
		node := v.Node.DeepCopy()
		delete(node.Labels, karpenter.NodeInitializedLabelKey)
		return []effect.Effect{effect.Update{Object: node}}
	}
	isSettled := !v.Now.Before(v.rebootIssued(p).Add(event.RebootRequestedType.TTL() + settleMargin))
	if v.Node.Status.NodeInfo.BootID == v.Claim.Annotations[karpenter.RebootPreBootIDAnnotationKey] || !isSettled {
		return nil
	}
	if node, changes := v.withoutRebootTaint(); changes {
		if !v.isRebootCurrent() {
			return nil // The taint may be that of the next reboot.
		}
		return []effect.Effect{
			effect.Update{Object: node},
			events.RebootObserved.About(cluster.NodeClaims, v.Claim, v.Now, "New boot observed (bootID changed); awaiting node readiness"),
		}
	}
	if !conditions.NodeReady(v.Node) {
		return nil
	}
	return []effect.Effect{effect.UpdateStatus{Object: v.withEndedReboot(karpenter.RebootSucceededReason, "node rebooted and rejoined the cluster")}}
}

// markFailedReboot records that the reboot has failed, and the deadline of the drain, which has the limit of the
// reboot's drain. The next reconcile deletes the claim because of the mark: a node that recovers afterwards does not
// keep a deadline.
func (v View) markFailedReboot(limit *time.Duration, why string) []effect.Effect {
	claim := v.Claim.DeepCopy()
	if limit != nil {
		claim, _ = WithEarlierDeadline(claim, v.Now.Add(*limit))
	}
	progress := readProgress(claim)
	progress.Failure = why
	writeProgress(claim, progress)
	return []effect.Effect{effect.Update{Object: claim}}
}

// deleteFailedReboot deletes the claim of a reboot that is marked as failed, if it has not changed since it was read.
// Karpenter: pkg/controllers/nodeclaim/reboot/controller.go (transitionToFailed).
func (v View) deleteFailedReboot(why string) []effect.Effect {
	return []effect.Effect{
		effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(v.Claim), UID: v.Claim.UID, Why: RebootFailed + why, Read: v.Claim},
		v.reportFailedReboot(why),
	}
}

// refuseReboot ends a reboot that cannot begin. The node stays.
func (v View) refuseReboot(why string) []effect.Effect {
	var effects []effect.Effect
	if node, changes := v.withoutRebootTaint(); changes {
		effects = append(effects, effect.Update{Object: node})
	}
	return append(effects, effect.UpdateStatus{Object: v.withEndedReboot(karpenter.RebootFailedReason, why)}, v.reportFailedReboot(why))
}

func (v View) reportFailedReboot(why string) effect.Effect {
	return events.RebootFailed.About(cluster.NodeClaims, v.Claim, v.Now, "%s", why)
}

// withEndedReboot returns the claim of a reboot that ended.
func (v View) withEndedReboot(reason, message string) *karpenter.NodeClaim {
	claim := v.Claim.DeepCopy()
	claim.Status.Conditions = conditions.With(claim, metav1.Condition{
		Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	}, v.Now)
	return claim
}

// withoutEndedReboot returns the claim without the progress of a reboot that has ended; nil if it has none.
func (v View) withoutEndedReboot() *karpenter.NodeClaim {
	_, recorded := v.Claim.Annotations[karpenter.RebootPreBootIDAnnotationKey]
	if v.Claim.IsRebooting() || !recorded && v.Claim.Annotations[RebootAnnotation] == "" {
		return nil
	}
	claim := v.Claim.DeepCopy()
	RemoveRebootProgress(claim)
	return claim
}

// isRebootCurrent reports whether the claim and its node are in the same step of the same reboot on the API server.
func (v View) isRebootCurrent() bool {
	claim, node := v.Live()
	if claim == nil || node == nil || claim.UID != v.Claim.UID || claim.DeletionTimestamp != nil || node.UID != v.Node.UID {
		return false
	}
	now, _ := claim.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	seen := v.rebootCondition()
	return now.Status == seen.Status && now.Reason == seen.Reason && now.LastTransitionTime.Equal(&seen.LastTransitionTime) &&
		claim.Annotations[RebootAnnotation] == v.Claim.Annotations[RebootAnnotation] &&
		node.Status.NodeInfo.BootID == v.Node.Status.NodeInfo.BootID &&
		karpenter.HasTaint(node.Spec.Taints, karpenter.RebootingTaint()) == karpenter.HasTaint(v.Node.Spec.Taints, karpenter.RebootingTaint())
}

// isRebootProposed reports whether the claim still carries the proposal of the reboot.
func (v View) isRebootProposed() bool {
	p := planning.ReadProposal(v.Claim)
	return p != nil && p.Reboot != ""
}

func (v View) rebootCondition() metav1.Condition {
	c, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	return c
}

// rebootRequested returns when the reboot was requested.
func (v View) rebootRequested() time.Time { return v.rebootCondition().LastTransitionTime.Time }

// rebootIssued returns when EC2 accepted the reboot. For a reboot that Karpenter issued, it is when the node
// ceased to be initialized.
func (v View) rebootIssued(p rebootProgress) time.Time {
	initialized, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
	if p.Issued.IsZero() && initialized.Status == metav1.ConditionUnknown {
		return initialized.LastTransitionTime.Time
	}
	return p.Issued
}

func (v View) withRebootTaint() (*corev1.Node, bool) {
	if karpenter.HasTaint(v.Node.Spec.Taints, karpenter.RebootingTaint()) {
		return v.Node, false
	}
	node := v.Node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints, karpenter.RebootingTaint())
	return node, true
}

func (v View) withoutRebootTaint() (*corev1.Node, bool) {
	if !karpenter.HasTaint(v.Node.Spec.Taints, karpenter.RebootingTaint()) {
		return v.Node, false
	}
	node := v.Node.DeepCopy()
	node.Spec.Taints = withoutTaint(node.Spec.Taints, karpenter.RebootingTaintKey)
	return node, true
}
