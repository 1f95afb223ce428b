package memcluster

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// validateNew refuses an object whose metadata, or a NodeClaim whose requirements, the
// API server refuses: fault.Invalid.
func validateNew(what call, object cluster.Object) error {
	problems := validation.ValidateObjectMetaAccessor(object, what.kind.Namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	var errs []error
	switch object := object.(type) {
	case *karpenter.NodeClaim:
		errs = object.Validate()
	case *corev1.ConfigMap:
		errs = configMapErrors(object)
	}
	if len(problems) == 0 && len(errs) == 0 {
		return nil
	}
	return what.newError(fault.Invalid, "%w", errors.Join(problems.ToAggregate(), errors.Join(errs...)))
}

// configMapErrors reports more data than the API server accepts (k8s.io/kubernetes, pkg/apis/core/validation).
func configMapErrors(object *corev1.ConfigMap) []error {
	size := 0
	for _, value := range object.Data {
		size += len(value)
	}
	for _, value := range object.BinaryData {
		size += len(value)
	}
	if size <= corev1.MaxSecretSize {
		return nil
	}
	return []error{fmt.Errorf("the data has %d bytes, more than %d", size, corev1.MaxSecretSize)}
}

// The patterns and limits of conditions in the schemas of Karpenter's kinds.
var (
	conditionType   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	conditionReason = regexp.MustCompile(`^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$`)
)

const conditionTypeMax, conditionReasonMax, conditionMessageMax = 316, 1024, 32_768

// validateStatus refuses conditions of Karpenter's kinds that their schemas do not permit: fault.Invalid.
func validateStatus(what call, object cluster.Object) error {
	status := fieldOf(object, "Status")
	if !status.IsValid() || what.kind.Group != karpenter.Group && what.kind.Group != karpenter.AWSGroup {
		return nil
	}
	conditions, _ := reflect.TypeAssert[karpenter.Conditions](status.FieldByName("Conditions"))
	seen := map[string]bool{}
	for _, c := range conditions {
		if err := conditionError(c); err != nil {
			return what.newError(fault.Invalid, "condition %s: %w", c.Type, err)
		}
		if seen[c.Type] {
			return what.newError(fault.Invalid, "condition %s exists twice", c.Type)
		}
		seen[c.Type] = true
	}
	return nil
}

func conditionError(c metav1.Condition) error {
	switch {
	case len(c.Type) > conditionTypeMax || !conditionType.MatchString(c.Type):
		return fmt.Errorf("the type %q is invalid", c.Type)
	case c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse && c.Status != metav1.ConditionUnknown:
		return fmt.Errorf("the status %q is not True, False or Unknown", c.Status)
	case len(c.Reason) > conditionReasonMax || !conditionReason.MatchString(c.Reason):
		return fmt.Errorf("the reason %q is invalid", c.Reason)
	case utf8.RuneCountInString(c.Message) > conditionMessageMax:
		return fmt.Errorf("the message has more than %d characters", conditionMessageMax)
	case c.ObservedGeneration < 0:
		return fmt.Errorf("the observed generation is %d", c.ObservedGeneration)
	case c.LastTransitionTime.IsZero():
		return errors.New("the transition time is missing")
	}
	return nil
}

// validateChange is validateNew for what an update may change.
func validateChange(what call, next, old cluster.Object) error {
	if what.kind == cluster.NodeClaims && !hasSameSpec(next, old) {
		return what.newError(fault.Invalid, "the spec of a NodeClaim is immutable")
	}
	if what.kind == cluster.ConfigMaps {
		return validateNew(what, next)
	}
	if maps.Equal(next.GetLabels(), old.GetLabels()) && maps.Equal(next.GetAnnotations(), old.GetAnnotations()) &&
		slices.Equal(next.GetFinalizers(), old.GetFinalizers()) && len(next.GetOwnerReferences()) == len(old.GetOwnerReferences()) {
		return nil
	}
	return validateNew(what, next)
}
