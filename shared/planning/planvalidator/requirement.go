package planvalidator

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Requirement is one line of a NodePool's requirements.
type Requirement struct {
	Key      string                      `json:"key"`
	Operator corev1.NodeSelectorOperator `json:"operator"`
	Values   []string                    `json:"values,omitempty"`
	// MinValues is how many different values the options of a launch must keep.
	MinValues *int `json:"minValues,omitempty"`
}

// The operators that NodePools have beyond Kubernetes' own.
const (
	opGte corev1.NodeSelectorOperator = "Gte"
	opLte corev1.NodeSelectorOperator = "Lte"
)

// Matches reports whether a node with these labels satisfies the requirement. As in Kubernetes, a missing label
// satisfies only NotIn and DoesNotExist.
func (r Requirement) Matches(set labels.Set) bool {
	value, present := set[stableLabel(r.Key)]
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return present && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !present || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return present
	case corev1.NodeSelectorOpDoesNotExist:
		return !present
	}
	return present && len(r.Values) == 1 && compareNumbers(value, r.Operator, r.Values[0])
}

// compareNumbers compares whole numbers; other values never match.
func compareNumbers(value string, operator corev1.NodeSelectorOperator, bound string) bool {
	a, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	b, err := strconv.ParseInt(bound, 10, 64)
	if err != nil {
		return false
	}
	switch operator {
	case corev1.NodeSelectorOpGt:
		return a > b
	case corev1.NodeSelectorOpLt:
		return a < b
	case opGte:
		return a >= b
	case opLte:
		return a <= b
	}
	return false
}
