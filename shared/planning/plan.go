package planning

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Plan is the result of the planner for one batch. The message plan.made refers to this document, and
// explain shows it.
type Plan struct {
	Outbox  string          `json:"outbox"`
	Seq     uint64          `json:"seq"`
	Batch   event.Ref       `json:"batch"`
	Intents []PlannedIntent `json:"intents,omitempty"`
	// Nominations are the nodes or NodeClaims where pods are expected.
	Nominations []Nomination   `json:"nominations,omitempty"`
	Unplaced    []UnplacedPods `json:"unplaced,omitempty"`
	// PricePerHour is the price of the new nodes, and BoundPerHour a lower bound for any plan for
	// their pods, both in US dollars.
	PricePerHour float64 `json:"pricePerHour"`
	BoundPerHour float64 `json:"boundPerHour,omitempty"`
	// UnlaunchableClaims are the user-created NodeClaims for which nothing can be launched, with the
	// reasons.
	UnlaunchableClaims []UnlaunchableClaim `json:"notLaunched,omitempty"`
	// Partial is true if the work budget ran out before all pods were planned.
	Partial bool `json:"partial,omitempty"`
	// Warnings are warnings for the user about the launches, without duplicates.
	Warnings []Warning `json:"warnings,omitempty"`
	// OverlayStatuses are the statuses of the NodeOverlays, if their feature gate is on.
	OverlayStatuses []OverlayStatus `json:"overlays,omitempty"`
	// Prices are the prices of launched NodeClaims that do not record their own, in US dollars an
	// hour. They are set if there is a price limit: the admission of launches has no catalogue.
	Prices map[string]float64 `json:"prices,omitempty"`
}

// UnlaunchableClaim is a NodeClaim for which nothing can be launched, and the reason.
type UnlaunchableClaim struct {
	Claim  string `json:"claim"`
	Reason string `json:"reason"`
}

// Warning is a problem with a NodePool's launches that does not make them fail.
type Warning struct {
	NodePool  string `json:"nodePool"`
	NodeClass string `json:"nodeClass"`
	// Rule is a stable name for tools; package launchspec defines them.
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// String returns the warning as text for users.
func (w Warning) String() string {
	return "NodePool " + w.NodePool + ", EC2NodeClass " + w.NodeClass + ": " + w.Message
}

// PlannedIntent is a planned CreateFleet call: the intent's document, and its NodeClaims.
type PlannedIntent struct {
	// ID derives from the batch and the index. It is the ClientToken for EC2.
	ID  string    `json:"id"`
	Ref event.Ref `json:"ref"`
	// NodePool is the pool whose limits the NodeClaims count against.
	NodePool string         `json:"nodePool"`
	Claims   []PlannedClaim `json:"claims"`
}

// PlannedClaim is one NodeClaim as lifecycle creates it.
type PlannedClaim struct {
	// Object has a name derived from intent and slot, labels, annotations, finalizer, owner and spec.
	// If it has a UID, a user created the NodeClaim, and lifecycle only adds the labels and
	// annotations.
	Object karpenter.NodeClaim `json:"object"`
	// Ceiling is the largest capacity of any type that the launch may choose, by resource, with
	// nodes=1 and the highest price as PriceResource. Admission counts it against the limits until the
	// type is known.
	Ceiling corev1.ResourceList `json:"ceiling"`
	// PricePerHour is the price of the cheapest offering, in US dollars.
	PricePerHour float64 `json:"pricePerHour"`
	Pods         int     `json:"pods"`
}

// Nomination is the NodeClaim or node where a pod is expected.
type Nomination struct {
	Namespace string `json:"namespace"`
	Pod       PodRef `json:"pod"`
	// Claim is the name of a new or existing NodeClaim; empty for an unmanaged node.
	Claim string `json:"claim,omitempty"`
	Node  string `json:"node,omitempty"`
	// Devices are the devices planned for the pod's ResourceClaims, as driver/pool/device. On a new
	// node they are those of the cheapest instance type. kube-scheduler may allocate others.
	Devices []string `json:"devices,omitempty"`
}

// UnplacedPods is a class of pods that were not placed, and why.
type UnplacedPods struct {
	Namespace  string      `json:"namespace"`
	Pods       []PodRef    `json:"pods"`
	Rejections []Rejection `json:"rejections"`
}

// Rejection is the rule by which a NodePool, or every existing node, rejects a pod.
type Rejection struct {
	// NodePool is empty if the reason is the pod itself.
	NodePool string `json:"nodePool,omitempty"`
	// Rule is one of the Rule constants.
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
	// LacksInstanceTypes is true if the NodePool has no instance type for any pod.
	LacksInstanceTypes bool `json:"lacksInstanceTypes,omitempty"`
}

// Rules of Rejections. The names are stable because tools use them.
const (
	// RulePod: no node could hold the pod; the reason is the pod itself.
	RulePod = "pod"
	// RuleNotReady: the pool launches nothing at the moment.
	RuleNotReady = "not-ready"
	// RuleTaints: the pod does not tolerate a taint of the pool.
	RuleTaints = "taints"
	// RuleRequirements: pod and pool require different values of a label.
	RuleRequirements = "requirements"
	// RuleNoOffering: no instance type of the pool suits, or none can be bought.
	RuleNoOffering = "no-offering"
	// RuleResources: no instance type of the pool is large enough.
	RuleResources = "resources"
	// RuleDevices: no new node of the pool would have the devices that the pod claims.
	RuleDevices = "devices"
	// RuleTopology: spread, affinity or anti-affinity to other pods excludes the pod.
	RuleTopology = "topology"
	// RuleAddresses: no subnet or placement group has capacity for another node.
	RuleAddresses = "addresses"
	// RuleBudget: the work budget ran out before the pod's turn came.
	RuleBudget = "budget"
	// RuleLimits: another node would exceed the pool's limits.
	RuleLimits = "limits"
)
