package memcluster

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
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
	if claim, ok := object.(*karpenter.NodeClaim); ok {
		errs = claim.Validate()
	}
	if len(problems) == 0 && len(errs) == 0 {
		return nil
	}
	return what.newError(fault.Invalid, "%w", errors.Join(problems.ToAggregate(), errors.Join(errs...)))
}

// validateChange is validateNew for the metadata that an update may change.
func validateChange(what call, next, old cluster.Object) error {
	if maps.Equal(next.GetLabels(), old.GetLabels()) && maps.Equal(next.GetAnnotations(), old.GetAnnotations()) &&
		slices.Equal(next.GetFinalizers(), old.GetFinalizers()) && len(next.GetOwnerReferences()) == len(old.GetOwnerReferences()) {
		return nil
	}
	return validateNew(what, next)
}
