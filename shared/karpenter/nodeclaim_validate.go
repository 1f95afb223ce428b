package karpenter

import "fmt"

// Validate returns an error for each requirement that the deployed NodeClaim manifest's schema rejects, with its
// path, and nil if the API server accepts all.
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

// validateClaimOperator checks the values by the schema's rules for the operator.
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
