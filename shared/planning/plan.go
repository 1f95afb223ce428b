package planning

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Plan is what the planner decided for one batch. It is the document that
// plan.made refers to, and what explain shows.
type Plan struct {
	Outbox  string          `json:"outbox"`
	Seq     uint64          `json:"seq"`
	Batch   event.Ref       `json:"batch"`
	Intents []PlannedIntent `json:"intents,omitempty"`
	// Nominations says where each placed pod is expected.
	Nominations []Nomination   `json:"nominations,omitempty"`
	Unplaced    []UnplacedPods `json:"unplaced,omitempty"`
	// PricePerHour is what the new nodes cost, and BoundPerHour what no plan for
	// their pods can cost less than, both in US dollars.
	PricePerHour float64 `json:"pricePerHour"`
	BoundPerHour float64 `json:"boundPerHour,omitempty"`
	// UnlaunchableClaims says of NodeClaims that a person created why nothing can be launched
	// for them.
	UnlaunchableClaims []UnlaunchableClaim `json:"notLaunched,omitempty"`
	// Partial says that the work budget ran out before all pods were looked at.
	Partial bool `json:"partial,omitempty"`
	// Warnings are what a person should know of the launches, each once.
	Warnings []Warning `json:"warnings,omitempty"`
	// OverlayStatuses says of each NodeOverlay whether it counts, where they are heeded.
	OverlayStatuses []OverlayStatus `json:"overlays,omitempty"`
	// Prices are what launched claims cost that do not say it themselves, in US dollars
	// an hour, where money is limited: the door has no catalogue to look them up in.
	Prices map[string]float64 `json:"prices,omitempty"`
}

// UnlaunchableClaim is a NodeClaim for which nothing can be launched, and why.
type UnlaunchableClaim struct {
	Claim  string `json:"claim"`
	Reason string `json:"reason"`
}

// Warning is something about a pool's launches that nothing fails for.
type Warning struct {
	NodePool  string `json:"nodePool"`
	NodeClass string `json:"nodeClass"`
	// Rule is a stable name that tools match; package launchspec has them.
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// String is the warning as a person reads it.
func (w Warning) String() string {
	return "NodePool " + w.NodePool + ", EC2NodeClass " + w.NodeClass + ": " + w.Message
}

// PlannedIntent is one fleet call to be: the intent's document, and the claims
// that share it.
type PlannedIntent struct {
	// ID derives from the batch and the index; EC2's ClientToken is this.
	ID  string    `json:"id"`
	Ref event.Ref `json:"ref"`
	// NodePool is whose limits the claims count against.
	NodePool string         `json:"nodePool"`
	Claims   []PlannedClaim `json:"claims"`
}

// PlannedClaim is one NodeClaim as lifecycle creates it.
type PlannedClaim struct {
	// Object has its name (derived from intent and slot), labels, annotations,
	// finalizer, owner and spec. If it has a UID, the claim exists, because a person
	// created it, and lifecycle adds the labels and annotations to it.
	Object karpenter.NodeClaim `json:"object"`
	// Ceiling is the largest capacity, by resource, of any type that the launch
	// may choose, nodes=1, and as PriceResource the most that it may cost. The door
	// counts it against the limits until the type is known.
	Ceiling corev1.ResourceList `json:"ceiling"`
	// PricePerHour is that of the cheapest offering, in US dollars.
	PricePerHour float64 `json:"pricePerHour"`
	Pods         int     `json:"pods"`
}

// Nomination expects a pod on a claim or on a node.
type Nomination struct {
	Namespace string `json:"namespace"`
	Pod       PodRef `json:"pod"`
	// Claim is a claim's name, new or existing; empty for an unmanaged node.
	Claim string `json:"claim,omitempty"`
	Node  string `json:"node,omitempty"`
}

// UnplacedPods is a class of pods that found no place, and why.
type UnplacedPods struct {
	Namespace  string      `json:"namespace"`
	Pods       []PodRef    `json:"pods"`
	Rejections []Rejection `json:"rejections"`
}

// Rejection is the rule by which one NodePool, or every existing node, refused.
type Rejection struct {
	// NodePool is empty when the reason lies in the pod itself.
	NodePool string `json:"nodePool,omitempty"`
	// Rule is one of the Rule constants.
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
	// LacksInstanceTypes says that the NodePool has no instance type for any pod.
	LacksInstanceTypes bool `json:"barren,omitempty"`
}

// Rules, as they stand in a Rejection. Tools match them: the names are stable.
const (
	// RulePod: no node could hold the pod; the reason lies in the pod.
	RulePod = "pod"
	// RuleNotReady: the pool launches nothing at the moment.
	RuleNotReady = "not-ready"
	// RuleTaints: the pod does not tolerate a taint of the pool.
	RuleTaints = "taints"
	// RuleRequirements: pod and pool want different values of a label.
	RuleRequirements = "requirements"
	// RuleNoOffering: no instance type of the pool suits, or none can be bought.
	RuleNoOffering = "no-offering"
	// RuleResources: no instance type of the pool is large enough.
	RuleResources = "resources"
	// RuleTopology: spread, affinity or anti-affinity to other pods kept it out.
	RuleTopology = "topology"
	// RuleAddresses: no subnet or placement group has room for another node.
	RuleAddresses = "addresses"
	// RuleBudget: the work budget ran out before the pod's turn came.
	RuleBudget = "budget"
	// RuleLimits: another node would exceed the pool's limits.
	RuleLimits = "limits"
)
