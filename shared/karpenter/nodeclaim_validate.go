package karpenter

import "fmt"

// Validate finds what the NodeClaim's schema refuses in its requirements. Each error names its place; there is none when the
// API server accepts them. The schema is the deployed NodeClaim manifest.
func (c *NodeClaim) Validate() []error {
	const path = "spec.requirements"
	var errs []error
	if count := len(c.Spec.Requirements); count > RequirementsMax {
		errs = append(errs, fmt.Errorf("%s: %d requirements, and at most %d are allowed", path, count, RequirementsMax))
	}
	return append(errs, validateRequirements(path, c.Spec.Requirements, validateClaimLabel, validateClaimOperator)...)
}

func validateClaimLabel(key string) error {
	if IsRestrictedLabel(key) && key != LabelEC2NodeClass {
		return fmt.Errorf("label %s is restricted", key)
	}
	return nil
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
