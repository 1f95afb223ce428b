package nodeclass

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	conditionValidated = karpenter.ConditionTypeValidationSucceeded
	// waitingPrefix is the prefix of the messages of a condition that waits. Only lifecycle writes
	// such messages, so they distinguish waiting from a result.
	waitingPrefix = "waiting for "
)

// dryRunDependencies are the conditions that dry runs require.
var dryRunDependencies = []string{
	karpenter.ConditionTypeSubnetsReady, karpenter.ConditionTypeSecurityGroupsReady,
	karpenter.ConditionTypeAMIsReady, karpenter.ConditionTypeInstanceProfileReady,
}

// applyValidation applies the catalog's validation. Its error overrides the dry runs. Without an
// error the dry runs' result remains and the catalog's former error is removed.
func (e *statusEditor) applyValidation(p *event.Problem) {
	have, known := e.currentCondition(conditionValidated)
	switch {
	case p != nil && p.Unread && e.isWaiting():
		// There is no result to keep yet, and dry runs are pending.
	case p != nil && p.Unread:
		e.keepUnread(conditionValidated, *p)
	case p != nil && !p.Warning:
		e.setCondition(conditionValidated, metav1.ConditionFalse, p.Reason, p.Message)
	case !e.DryRuns:
		e.setCondition(conditionValidated, metav1.ConditionTrue, problemReason(p), problemMessage(p))
	case !known || e.isOverruled():
		e.setWaiting(metav1.ConditionUnknown, karpenter.ReasonAwaitingReconciliation, "dry runs of CreateLaunchTemplate, CreateFleet and RunInstances")
	case have.Status == metav1.ConditionTrue:
		e.setCondition(conditionValidated, metav1.ConditionTrue, problemReason(p), problemMessage(p))
	}
}

// applyDryRuns applies the launcher's dry runs for this generation, if they were made.
func (e *statusEditor) applyDryRuns(b event.NodeClassEnsured) {
	if !e.DryRuns || !b.Validated || b.Generation != e.class.Generation || e.isOverruled() {
		return
	}
	have, known := e.currentCondition(conditionValidated)
	switch {
	case b.Invalid != nil:
		e.setCondition(conditionValidated, metav1.ConditionFalse, b.Invalid.Reason, b.Invalid.Message)
	case !known || have.Status != metav1.ConditionTrue: // A True condition may contain a warning.
		e.setCondition(conditionValidated, metav1.ConditionTrue, "", "")
	}
}

// isOverruled reports whether the catalog or checkGPUSharing found an error that dry runs cannot detect.
func (e *statusEditor) isOverruled() bool {
	have, known := e.currentCondition(conditionValidated)
	return known && have.Status == metav1.ConditionFalse && slices.Contains([]string{
		event.TagValidationFailed, event.UserDataSizeLimitExceeded, event.ClusterCIDRResolutionFailed, "RoleAndInstanceProfile", event.NVIDIAConsumableCapacityInvalid, event.DRADisabled,
		event.InvalidKubeletConfiguration, event.KubeletExpressionInvalid, event.KubeletExpressionEvaluationFailed,
		event.KubeletExpressionsDisabled, event.UnsupportedKubeletConfiguration,
	}, have.Reason)
}

// awaitDependencies makes validation wait while conditions that it requires are not True.
func (e *statusEditor) awaitDependencies() {
	if !e.DryRuns || e.isOverruled() {
		return
	}
	var missing []string
	status := metav1.ConditionUnknown
	for _, kind := range dryRunDependencies {
		have, known := e.currentCondition(kind)
		if !known || have.Status != metav1.ConditionTrue {
			missing = append(missing, kind)
		}
		if known && have.Status == metav1.ConditionFalse {
			status = metav1.ConditionFalse
		}
	}
	have, there := e.class.Status.Conditions.Get(conditionValidated)
	switch {
	case len(missing) > 0:
		e.setWaiting(status, event.DependenciesNotReady, strings.Join(missing, ", "))
	case !there || have.ObservedGeneration != e.class.Generation || have.Reason == event.DependenciesNotReady && e.isWaiting():
		e.setWaiting(metav1.ConditionUnknown, karpenter.ReasonAwaitingReconciliation, "dry runs of CreateLaunchTemplate, CreateFleet and RunInstances")
	}
}

// isWaiting reports whether the condition waits, for this generation.
func (e *statusEditor) isWaiting() bool {
	have, there := e.class.Status.Conditions.Get(conditionValidated)
	return there && have.ObservedGeneration == e.class.Generation && strings.HasPrefix(have.Message, waitingPrefix)
}

func (e *statusEditor) setWaiting(status metav1.ConditionStatus, reason, what string) {
	e.setCondition(conditionValidated, status, reason, waitingPrefix+what)
}

func problemReason(p *event.Problem) string {
	if p == nil {
		return ""
	}
	return p.Reason
}

func problemMessage(p *event.Problem) string {
	if p == nil {
		return ""
	}
	return p.Message
}

// CanDryRun reports whether all conditions that dry runs require are True.
func CanDryRun(class *karpenter.EC2NodeClass) bool {
	return !slices.ContainsFunc(dryRunDependencies, func(kind string) bool { return !isTrue(class, kind) })
}

// IsValidated reports whether this generation passed validation.
func IsValidated(class *karpenter.EC2NodeClass) bool { return isTrue(class, conditionValidated) }

func isTrue(class *karpenter.EC2NodeClass, kind string) bool {
	have, there := class.Status.Conditions.Get(kind)
	return there && have.Status == metav1.ConditionTrue && have.ObservedGeneration == class.Generation
}

// IsProfileMissing reports whether the instance profile that the class names did not exist at the last dry runs.
func IsProfileMissing(class *karpenter.EC2NodeClass) bool {
	have, there := class.Status.Conditions.Get(conditionValidated)
	return there && have.Status == metav1.ConditionFalse && have.Reason == event.InstanceProfileNotFound
}
