package planning

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// areLabelValues reports whether each of the values is a valid label value.
func areLabelValues(values []string) bool {
	return !slices.ContainsFunc(values, func(value string) bool { return !IsLabelValue(value) })
}

// IsLabelValue reports whether Kubernetes accepts the value as a label's: empty, or at
// most 63 ASCII alphanumeric characters, "-", "_" and ".", alphanumeric at both ends.
// It is validation.IsValidLabelValue without the regular expression, because planning
// reads hundreds of thousands of values.
func IsLabelValue(value string) bool {
	if value == "" {
		return true
	}
	if len(value) > karpenter.LabelValueMax || !isAlphanumeric(value[0]) || !isAlphanumeric(value[len(value)-1]) {
		return false
	}
	for i := range len(value) {
		if c := value[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
