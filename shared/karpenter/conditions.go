package karpenter

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of several kinds.
const (
	// ConditionTypeReady summarizes the others.
	ConditionTypeReady = "Ready"
	// ConditionTypeValidationSucceeded: the checks of a NodePool or an EC2NodeClass beyond the schema succeeded.
	ConditionTypeValidationSucceeded = "ValidationSucceeded"
)

// Reasons that Karpenter uses for these kinds.
const (
	// ReasonAwaitingReconciliation is the reason of a condition that has not been reconciled yet.
	ReasonAwaitingReconciliation = "AwaitingReconciliation"
	// ReasonUnhealthyDependents is the reason of a Ready that is False because another condition is.
	ReasonUnhealthyDependents = "UnhealthyDependents"
	// ReasonReconcilingDependents is the reason of a Ready that is Unknown because another condition is.
	ReasonReconcilingDependents = "ReconcilingDependents"
)

// Conditions is an immutable list of conditions: changes return a new list, or the same one if nothing changes, and the caller
// passes the time.
type Conditions []metav1.Condition

// Get returns the condition of a type.
func (c Conditions) Get(kind string) (metav1.Condition, bool) {
	i := c.index(kind)
	if i < 0 {
		return metav1.Condition{}, false
	}
	return c[i], true
}

// IsTrue reports whether the condition exists and is True.
func (c Conditions) IsTrue(kind string) bool { return c.status(kind) == metav1.ConditionTrue }

// IsFalse reports whether the condition exists and is False; an absent or Unknown one is neither.
func (c Conditions) IsFalse(kind string) bool { return c.status(kind) == metav1.ConditionFalse }

// With returns the list with the condition set. Its transition time is at if the status changes, and otherwise the
// previous one; the argument's is ignored. The order is stable and new types are appended, so that equal inputs give
// equal bytes.
func (c Conditions) With(condition metav1.Condition, at time.Time) Conditions {
	condition.LastTransitionTime = metav1.NewTime(at)
	i := c.index(condition.Type)
	if i < 0 {
		return append(slices.Clone(c), condition)
	}
	if c[i].Status == condition.Status {
		condition.LastTransitionTime = c[i].LastTransitionTime
	}
	if c[i] == condition {
		return c
	}
	out := slices.Clone(c)
	out[i] = condition
	return out
}

// Equal reports whether two lists have the same conditions in the same order.
func (c Conditions) Equal(other Conditions) bool {
	return slices.EqualFunc(c, other, func(a, b metav1.Condition) bool {
		isSameTime := a.LastTransitionTime.Time.Equal(b.LastTransitionTime.Time)
		a.LastTransitionTime = b.LastTransitionTime
		return isSameTime && a == b
	})
}

// Without returns the list without the condition.
func (c Conditions) Without(kind string) Conditions {
	return slices.DeleteFunc(slices.Clone(c), func(x metav1.Condition) bool { return x.Type == kind })
}

// WithReady returns the list with Ready recomputed from the conditions in dependents. A condition that was not
// observed at this generation is about an older spec and counts as Unknown. Ready is True if all are, False if any
// is, and otherwise Unknown; the message lists the dependents that are not True, in the order of dependents.
func (c Conditions) WithReady(dependents []string, generation int64, at time.Time) Conditions {
	ready := metav1.Condition{
		Type: ConditionTypeReady, Status: metav1.ConditionTrue, Reason: ConditionTypeReady, ObservedGeneration: generation,
	}
	var held []string
	for _, kind := range dependents {
		status := c.statusAt(kind, generation)
		if status == metav1.ConditionTrue {
			continue
		}
		held = append(held, kind+"="+string(status))
		if ready.Status != metav1.ConditionFalse {
			ready.Status = status
		}
	}
	switch ready.Message = strings.Join(held, ", "); ready.Status {
	case metav1.ConditionFalse:
		ready.Reason = ReasonUnhealthyDependents
	case metav1.ConditionUnknown:
		ready.Reason = ReasonReconcilingDependents
	}
	return c.With(ready, at)
}

func (c Conditions) index(kind string) int {
	for i := range c { // slices.IndexFunc copies each condition.
		if c[i].Type == kind {
			return i
		}
	}
	return -1
}

func (c Conditions) status(kind string) metav1.ConditionStatus {
	if i := c.index(kind); i >= 0 {
		return c[i].Status
	}
	return metav1.ConditionUnknown
}

func (c Conditions) statusAt(kind string, generation int64) metav1.ConditionStatus {
	if i := c.index(kind); i >= 0 && c[i].ObservedGeneration == generation {
		return c[i].Status
	}
	return metav1.ConditionUnknown
}
