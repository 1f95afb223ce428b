package karpenter

import corev1 "k8s.io/api/core/v1"

// NodeSelectorRequirementWithMinValues restricts the values of one label, and may require a minimum number of
// values.
type NodeSelectorRequirementWithMinValues struct {
	// The label key.
	// +required
	Key string `json:"key"`
	// How the label is compared with values: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte.
	// +kubebuilder:validation:Enum:=Gte;Lte
	// +required
	Operator corev1.NodeSelectorOperator `json:"operator,omitempty"`
	// One or more for In and NotIn, none for Exists and DoesNotExist, one whole number for Gt, Lt, Gte and Lte.
	// +optional
	// +listType=atomic
	Values []string `json:"values,omitempty"`
	// The minimum number of different values among the instance types of a launch. Alpha.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=50
	// +optional
	MinValues *int `json:"minValues,omitempty"`
}

// Operators of a requirement. The last two exist only in Karpenter's API: Gt n is Gte n+1, Lt n is Lte n-1.
const (
	NodeSelectorOpIn           = corev1.NodeSelectorOpIn
	NodeSelectorOpNotIn        = corev1.NodeSelectorOpNotIn
	NodeSelectorOpExists       = corev1.NodeSelectorOpExists
	NodeSelectorOpDoesNotExist = corev1.NodeSelectorOpDoesNotExist
	NodeSelectorOpGt           = corev1.NodeSelectorOpGt
	NodeSelectorOpLt           = corev1.NodeSelectorOpLt

	NodeSelectorOpGte corev1.NodeSelectorOperator = "Gte"
	NodeSelectorOpLte corev1.NodeSelectorOperator = "Lte"
)

// The schema's limits for requirements.
const (
	RequirementsMax  = 100 // requirements in a template or claim
	MinValuesMax     = 50  // largest minValues; the smallest is 1
	LabelValueMax    = 63  // bytes in a label value
	LabelKeyMax      = 316 // bytes in a label key with its domain
	TemplateLabelMax = 100 // labels in a template
)
