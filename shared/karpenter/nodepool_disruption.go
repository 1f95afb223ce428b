package karpenter

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Disruption says when nodes of a pool may be consolidated and how many at once.
type Disruption struct {
	// How long a node must have had no pod changes before it may be consolidated, or Never. Static pools
	// ignore it.
	// +kubebuilder:default:="0s"
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type="string"
	// +kubebuilder:validation:Schemaless
	// +optional
	ConsolidateAfter NillableDuration `json:"consolidateAfter,omitempty"`
	// Which nodes may be consolidated. Static pools ignore it.
	// +kubebuilder:default:="WhenEmptyOrUnderutilized"
	// +kubebuilder:validation:Enum:=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// The number of nodes that may be disrupted at the same time. The strictest of the active budgets
	// applies.
	// +kubebuilder:validation:XValidation:message="'schedule' must be set with 'duration'",rule="self.all(x, has(x.schedule) == has(x.duration))"
	// +kubebuilder:default:={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	// +optional
	// +listType=atomic
	Budgets []Budget `json:"budgets,omitempty" hash:"ignore"`
}

// Budget limits the number of nodes of a pool that are disrupted at the same time.
type Budget struct {
	// The disruption reasons to which the budget applies. An empty list means all.
	// +kubebuilder:validation:MaxItems=50
	// +optional
	// +listType=set
	Reasons []DisruptionReason `json:"reasons,omitempty"`
	// The number of nodes, or a percentage of the pool's nodes, rounded up.
	// +kubebuilder:validation:Pattern:="^((100|[0-9]{1,2})%|[0-9]+)$"
	// +kubebuilder:default:="10%"
	Nodes string `json:"nodes" hash:"ignore"`
	// When the budget begins to apply: a cron expression of five fields or an @name, in UTC. Requires
	// duration; a budget without both always applies.
	// +kubebuilder:validation:Pattern:=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`
	// +optional
	Schedule *string `json:"schedule,omitempty" hash:"ignore"`
	// How long the budget applies after each time of the schedule, in hours and minutes.
	// +kubebuilder:validation:Pattern=`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`
	// +kubebuilder:validation:Type="string"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty" hash:"ignore"`
}

// ConsolidationPolicy names which nodes consolidation may touch.
type ConsolidationPolicy string

const (
	// ConsolidationPolicyWhenEmpty removes only empty nodes.
	ConsolidationPolicyWhenEmpty ConsolidationPolicy = "WhenEmpty"
	// ConsolidationPolicyWhenEmptyOrUnderutilized also removes and replaces nodes whose pods fit elsewhere for less.
	ConsolidationPolicyWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	// ConsolidationPolicyBalanced compares the savings of a move with the pods that it disrupts.
	ConsolidationPolicyBalanced ConsolidationPolicy = "Balanced"
)

// BalancedK is the k of the Balanced policy: a move is approved if its score is at least 1/k.
const BalancedK int32 = 2

// DisruptionReason is a disruption reason of a budget.
// +kubebuilder:validation:Enum={Underutilized,Empty,Drifted,Unhealthy}
type DisruptionReason string

// The reasons that a budget can have.
const (
	DisruptionReasonUnderutilized DisruptionReason = "Underutilized"
	DisruptionReasonEmpty         DisruptionReason = "Empty"
	DisruptionReasonDrifted       DisruptionReason = "Drifted"
	DisruptionReasonUnhealthy     DisruptionReason = "Unhealthy"
)
