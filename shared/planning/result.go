package planning

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Result is the result of Solve for one batch, before it becomes intents.
type Result struct {
	// Nodes are the nodes to launch, in the order in which they were opened.
	Nodes []PlannedNode
	// Nominations are the pods that are placed on existing nodes and NodeClaims.
	Nominations []Nomination
	Unplaced    []UnplacedPods
	// PricePerHour is the sum over Nodes, in US dollars.
	PricePerHour float64
	// BoundPerHour is a lower bound on the price of any plan for these pods, in US dollars; 0 if
	// unknown.
	BoundPerHour float64
	// Partial is true if the work budget ran out before all pods were planned.
	Partial bool
	// OverlayStatuses are the statuses of the NodeOverlays, if their feature gate is on.
	OverlayStatuses []OverlayStatus
	// Allocations are the devices for the ResourceClaims of the pods, sorted by claim.
	Allocations []ClaimAllocation
}

// PlannedNode is one node to launch, with all offerings that the launch may use.
type PlannedNode struct {
	NodePool  string
	NodeClass string
	// Requirements are those of the pool and the pods.
	Requirements Requirements
	// Offerings are all offerings that hold the pods, the cheapest first; never empty. Nodes share
	// lists: they must not be changed.
	Offerings []PricedOffering
	Pods      []PlacedPod
	// Requests is the sum for the pods and the daemons of the node.
	Requests corev1.ResourceList
	// PricePerHour is the price of the cheapest offering, in US dollars.
	PricePerHour float64
	// DeviceDrivers are the drivers of the devices that the pods were allocated on the node, sorted.
	DeviceDrivers []string
	// MinValuesRelaxed is true if the offerings do not cover every minValues, which the BestEffort
	// policy allows.
	MinValuesRelaxed bool
}

// PricedOffering is an offering with its price.
type PricedOffering struct {
	event.Offering
	// ZoneID identifies the same zone in every account.
	ZoneID string
	// PricePerHour is in US dollars.
	PricePerHour float64
	// PricedByOverlay is true if a NodeOverlay set the price. EC2 does not know such prices, so the
	// launch passes priorities.
	PricedByOverlay bool
}

// PlacedPod is a pod and its namespace.
type PlacedPod struct {
	Namespace string
	Pod       PodRef
	// Devices are the devices planned for the pod, as in Nomination.
	Devices []string
}

// OverlayStatus is whether a NodeOverlay is applied. Lifecycle writes the problem into the overlay's
// conditions.
type OverlayStatus struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	// Reason and Message describe its problem; empty if it is applied.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
