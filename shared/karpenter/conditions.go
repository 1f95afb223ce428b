package karpenter

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types that more than one kind has.
const (
	// ConditionTypeReady sums up the others.
	ConditionTypeReady = "Ready"
	// ConditionTypeValidationSucceeded: what the schema cannot check has been checked, of a NodePool and of an EC2NodeClass.
	ConditionTypeValidationSucceeded = "ValidationSucceeded"
)

// Reasons that the operators of these kinds share.
const (
	// ReasonAwaitingReconciliation is that of a condition that nobody has looked at yet.
	ReasonAwaitingReconciliation = "AwaitingReconciliation"
	// ReasonUnhealthyDependents is that of a Ready which is False because another condition is.
	ReasonUnhealthyDependents = "UnhealthyDependents"
	// ReasonReconcilingDependents is that of a Ready which waits for another condition.
	ReasonReconcilingDependents = "ReconcilingDependents"
)

// Conditions is a status's list of conditions as a value: changing it makes a new list, and time is passed in.
type Conditions []metav1.Condition

// Get finds the condition of a type.
func (c Conditions) Get(kind string) (metav1.Condition, bool) {
	i := c.index(kind)
	if i < 0 {
		return metav1.Condition{}, false
	}
	return c[i], true
}

// IsTrue reports whether the condition is there and IsTrue.
func (c Conditions) IsTrue(kind string) bool { return c.status(kind) == metav1.ConditionTrue }

// IsFalse reports whether the condition is there and IsFalse; an absent or Unknown one is neither.
func (c Conditions) IsFalse(kind string) bool { return c.status(kind) == metav1.ConditionFalse }

// With returns the list with the condition set. Its transition time is at when the status changes and stays what it was
// when the status does not, whatever the argument carries. Order is kept and new types go to the end, so that equal inputs give equal bytes.
func (c Conditions) With(condition metav1.Condition, at time.Time) Conditions {
	condition.LastTransitionTime = metav1.NewTime(at)
	i := c.index(condition.Type)
	if i < 0 {
		return append(slices.Clone(c), condition)
	}
	if c[i].Status == condition.Status {
		condition.LastTransitionTime = c[i].LastTransitionTime
	}
	out := slices.Clone(c)
	out[i] = condition
	return out
}

// Without returns the list without the condition.
func (c Conditions) Without(kind string) Conditions {
	return slices.DeleteFunc(slices.Clone(c), func(x metav1.Condition) bool { return x.Type == kind })
}

// WithReady returns the list with Ready recomputed from the conditions that it depends on. One that was not observed at this
// generation speaks of an older spec, so it counts as Unknown. Ready is True if all are, False if any is, and else Unknown;
// the message names those that stand in the way, in the order of dependents.
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
	return slices.IndexFunc(c, func(x metav1.Condition) bool { return x.Type == kind })
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
