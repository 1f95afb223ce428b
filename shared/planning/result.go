package planning

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Result is what Solve decides for one batch, before it becomes intents.
type Result struct {
	// Nodes are to be launched, in the order in which they were opened.
	Nodes []PlannedNode
	// Nominations are the pods that fit nodes and claims which exist already.
	Nominations []Nomination
	Unplaced    []UnplacedPods
	// PricePerHour is the sum over Nodes, in US dollars.
	PricePerHour float64
	// BoundPerHour is what no plan for these pods can cost less than, in US
	// dollars; 0 when it is not known.
	BoundPerHour float64
	// Partial says that the work budget ran out before all pods were looked at.
	Partial bool
	// OverlayStatuses says of each NodeOverlay whether it counts, where they are heeded.
	OverlayStatuses []OverlayStatus
}

// PlannedNode is one node to launch, with every way to buy it that is left.
type PlannedNode struct {
	NodePool  string
	NodeClass string
	// Requirements are the pool's, narrowed by those of the pods.
	Requirements Requirements
	// Offerings are the offerings that hold all of the pods, cheapest first; never
	// empty. Nodes with the same choice share one list: it is not to be changed.
	Offerings []PricedOffering
	Pods      []PlacedPod
	// Requests is what the pods and the daemons of the node take together.
	Requests corev1.ResourceList
	// PricePerHour is that of the cheapest option, in US dollars.
	PricePerHour float64
	// MinValuesRelaxed says that the options do not cover every minValues, which
	// the BestEffort policy allows.
	MinValuesRelaxed bool
}

// PricedOffering is an offering and its price.
type PricedOffering struct {
	event.Offering
	// ZoneID is the same place in every account.
	ZoneID string
	// PricePerHour is in US dollars.
	PricePerHour float64
	// PricedByOverlay says that a NodeOverlay set the price. EC2 does not know such prices, so
	// the launch passes priorities.
	PricedByOverlay bool
}

// PlacedPod is a pod and its namespace.
type PlacedPod struct {
	Namespace string
	Pod       PodRef
}

// OverlayStatus says whether one NodeOverlay is in force. Lifecycle writes the problem
// into the overlay's conditions.
type OverlayStatus struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	// Reason and Message are those of its problem; empty where it counts.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
