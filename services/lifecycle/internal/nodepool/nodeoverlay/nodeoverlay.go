// Package nodeoverlay computes the status of NodeOverlays from the plan's result. It is pure.
//
// The invariant: conditions have the generation that was planned with. A result for another
// generation changes nothing.
package nodeoverlay

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// ComputeStatus returns the overlay's status after a plan; false if the plan used another
// generation.
func ComputeStatus(o *karpenter.NodeOverlay, status planning.OverlayStatus, now time.Time) (karpenter.NodeOverlayStatus, bool) {
	if status.Generation != o.Generation {
		return o.Status, false
	}
	valid := metav1.Condition{
		Type: karpenter.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue,
		Reason: karpenter.ConditionTypeValidationSucceeded, ObservedGeneration: o.Generation,
	}
	if status.Reason != "" {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, status.Reason, status.Message
	}
	s := *o.Status.DeepCopy()
	s.Conditions = s.Conditions.With(valid, now).WithReady(karpenter.NodeOverlayReady(), o.Generation, now)
	return s, true
}
