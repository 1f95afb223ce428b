package karpenter

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ReasonNodePoolValidationFailed is the reason of a ValidationSucceeded that is False.
const ReasonNodePoolValidationFailed = "NodePoolValidationFailed"

// Validate checks what the schema cannot: names and values of labels and taints, restricted labels, and requirements
// that cannot be met. It returns an error with its path for each problem, and nil if the pool is valid.
func (p *NodePool) Validate() []error {
	template := &p.Spec.Template
	return slices.Concat(
		validateLabels("spec.template.metadata.labels", template.Labels),
		validateTaints(template.Spec.Taints, template.Spec.StartupTaints),
		validateRequirements("spec.template.spec.requirements", template.Spec.Requirements, ValidateTemplateLabel, validateOperator),
	)
}

// ValidateRequirements checks the requirements of the overlay as Validate checks those of a NodePool. An overlay may require the
// label of the NodePool and of the EC2NodeClass. It returns an error with its path for each problem.
func (o *NodeOverlay) ValidateRequirements() []error {
	var requirements []NodeSelectorRequirementWithMinValues
	for _, r := range o.Spec.Requirements {
		requirements = append(requirements, NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: r.Operator, Values: r.Values})
	}
	return validateRequirements("spec.requirements", requirements, validateOverlayLabel, validateOverlayOperator)
}

func validateOverlayLabel(key string) error {
	if IsRestrictedLabel(key) && key != LabelEC2NodeClass {
		return fmt.Errorf("label %s is not set by instance types or NodePools: use another label", key)
	}
	return nil
}

func validateOverlayOperator(r NodeSelectorRequirementWithMinValues) error {
	if r.Operator == NodeSelectorOpNotIn && len(r.Values) == 0 {
		return fmt.Errorf("operator NotIn of %s needs a value", r.Key)
	}
	return validateOperator(r)
}

func validateLabels(path string, labels map[string]string) []error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := fmt.Sprintf("%s[%s]", path, key)
		errs = append(errs, validateName(at, "the key", validation.IsQualifiedName(key))...)
		errs = append(errs, validateName(at, "the value", validation.IsValidLabelValue(labels[key]))...)
		if err := ValidateTemplateLabel(key); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	return errs
}

// validateName returns an error with Kubernetes' validation messages, if there are any.
func validateName(at, what string, problems []string) []error {
	if len(problems) == 0 {
		return nil
	}
	return []error{fmt.Errorf("%s: %s is wrong: %s", at, what, strings.Join(problems, "; "))}
}

// validateTaints checks both lists of taints: a pair of key and effect may occur only once in both.
func validateTaints(taints, startup []corev1.Taint) []error {
	type pair struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[pair]string{}
	var errs []error
	for _, list := range []struct {
		path   string
		taints []corev1.Taint
	}{{"spec.template.spec.taints", taints}, {"spec.template.spec.startupTaints", startup}} {
		for i, taint := range list.taints {
			at := fmt.Sprintf("%s[%d]", list.path, i)
			errs = append(errs, validateTaint(at, taint)...)
			this := pair{taint.Key, taint.Effect}
			if first := seen[this]; first != "" {
				errs = append(errs, fmt.Errorf("%s: %s with the effect %q duplicates %s: remove one of them", at, taint.Key, taint.Effect, first))
			} else {
				seen[this] = at
			}
		}
	}
	return errs
}

// validateTaint checks one taint. Karpenter validates a value like a key; an empty effect is valid.
func validateTaint(at string, taint corev1.Taint) []error {
	errs := validateName(at, "the key", validation.IsQualifiedName(taint.Key))
	if taint.Value != "" {
		errs = append(errs, validateName(at, "the value", validation.IsQualifiedName(taint.Value))...)
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute, "":
	default:
		errs = append(errs, fmt.Errorf("%s: unknown effect %q (use NoSchedule, PreferNoSchedule or NoExecute)", at, taint.Effect))
	}
	return errs
}

// validateRequirements checks each requirement's key, its values and its operator.
func validateRequirements(path string, requirements []NodeSelectorRequirementWithMinValues, label func(key string) error, operator func(NodeSelectorRequirementWithMinValues) error) []error {
	var errs []error
	for i, r := range requirements {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := label(r.Key); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
		errs = append(errs, validateName(at, "the key", validation.IsQualifiedName(r.Key))...)
		for _, value := range r.Values {
			errs = append(errs, validateName(at, "the value "+strconv.Quote(value), validation.IsValidLabelValue(value))...)
		}
		if err := operator(r); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	return errs
}

// validateOperator checks that the operator exists and that the values are valid for it.
func validateOperator(r NodeSelectorRequirementWithMinValues) error {
	switch r.Operator {
	case NodeSelectorOpNotIn, NodeSelectorOpExists, NodeSelectorOpDoesNotExist:
		return nil
	case NodeSelectorOpGt, NodeSelectorOpLt, NodeSelectorOpGte, NodeSelectorOpLte:
		if len(r.Values) == 1 {
			if n, err := strconv.Atoi(r.Values[0]); err == nil && n >= 0 {
				return nil
			}
		}
		return fmt.Errorf("operator %s of %s needs one whole number, such as [\"4\"]", r.Operator, r.Key)
	case NodeSelectorOpIn:
		return validateIn(r)
	}
	return fmt.Errorf("unknown operator %q (use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte)", r.Operator)
}

// validateIn checks that there are enough values. For a label with fixed values only those count, and unknown values
// are accepted as long as enough remain.
func validateIn(r NodeSelectorRequirementWithMinValues) error {
	least := 1
	if r.MinValues != nil {
		least = max(least, *r.MinValues)
	}
	if len(r.Values) < least {
		return fmt.Errorf("operator In of %s needs %d values and has %d", r.Key, least, len(r.Values))
	}
	known := WellKnownLabelValues(r.Key)
	if known == nil {
		return nil
	}
	good := 0
	for _, value := range r.Values {
		if slices.Contains(known, value) {
			good++
		}
	}
	if good < least {
		return fmt.Errorf("operator In of %s needs %d values that exist, of %s, and has %d", r.Key, least, strings.Join(known, ", "), good)
	}
	return nil
}
