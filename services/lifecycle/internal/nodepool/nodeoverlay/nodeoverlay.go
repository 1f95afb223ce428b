// Package nodeoverlay says what a NodeOverlay's status must be. It is pure: the
// overlay and what a plan says of it decide.
//
// The invariant: the conditions speak of the generation that was planned with. What
// a plan says of another generation is not said of this one.
package nodeoverlay

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// ComputeStatus is the overlay's status after a plan; false where the plan knows another
// generation.
func ComputeStatus(o *karpenter.NodeOverlay, verdict planning.OverlayVerdict, now time.Time) (karpenter.NodeOverlayStatus, bool) {
	if verdict.Generation != o.Generation {
		return o.Status, false
	}
	valid := metav1.Condition{
		Type: karpenter.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue,
		Reason: karpenter.ConditionTypeValidationSucceeded, ObservedGeneration: o.Generation,
	}
	if verdict.Reason != "" {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, verdict.Reason, verdict.Message
	}
	s := *o.Status.DeepCopy()
	s.Conditions = s.Conditions.With(valid, now).WithReady(karpenter.NodeOverlayReady(), o.Generation, now)
	return s, true
}
