package karpenter

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate finds what the NodeClaim's schema refuses in its requirements. Each error names its place; there is none when the
// API server accepts them. The schema is the deployed NodeClaim manifest.
func (c *NodeClaim) Validate() []error {
	const path = "spec.requirements"
	var errs []error
	if count := len(c.Spec.Requirements); count > RequirementsMax {
		errs = append(errs, fmt.Errorf("%s: %d requirements, and at most %d are allowed", path, count, RequirementsMax))
	}
	for i, r := range c.Spec.Requirements {
		at := fmt.Sprintf("%s[%d]", path, i)
		errs = append(errs, name(at, "the key", validation.IsQualifiedName(r.Key))...)
		if RestrictedLabel(r.Key) && r.Key != LabelEC2NodeClass {
			errs = append(errs, fmt.Errorf("%s: label %s is restricted", at, r.Key))
		}
		for _, value := range r.Values {
			errs = append(errs, name(at, "the value "+strconv.Quote(value), validation.IsValidLabelValue(value))...)
		}
		if err := validateClaimOperator(r); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	return errs
}

// validateClaimOperator checks that the values suit the operator, by the schema's rules alone.
func validateClaimOperator(r NodeSelectorRequirementWithMinValues) error {
	if r.Operator != NodeSelectorOpIn {
		return validateOperator(r)
	}
	least := 1
	if r.MinValues != nil {
		least = max(least, *r.MinValues)
	}
	if len(r.Values) < least {
		return fmt.Errorf("operator In of %s needs %d values and has %d", r.Key, least, len(r.Values))
	}
	return nil
}
