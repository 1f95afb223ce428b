package launchspec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// Kind is the folder of intent documents.
const Kind = event.IntentKind

// Intent is a complete fleet call. Planner or disruption write it, and the launcher executes it
// without decisions of its own. Its id is EC2's ClientToken, which is never sent with another body:
// the document is immutable and verified by digest.
type Intent struct {
	ID        string `json:"id"`
	Cluster   string `json:"cluster"`
	NodePool  string `json:"nodePool"`
	NodeClass string `json:"nodeClass"`
	// Templates are the launch templates that Fleet refers to.
	Templates []cloud.Template `json:"templates"`
	// Fleet is the call; Token is the id and Count the number of NodeClaims.
	Fleet cloud.FleetRequest `json:"fleet"`
	// Claims are the names of the NodeClaims that share the call.
	Claims []string `json:"claims"`
	// Types has the facts that NodeClaims get once their instance type is known.
	Types map[string]TypeFacts `json:"types"`
	// Prices are in US dollars an hour, by type and zone ("t4g.large/ap-northeast-2a").
	Prices map[string]float64 `json:"prices,omitempty"`
}

// Price returns the price of the type in the zone, in US dollars an hour; false if the launch does not
// try it.
func (i Intent) Price(instanceType, zone string) (perHour float64, known bool) {
	perHour, known = i.Prices[instanceType+"/"+zone]
	return perHour, known
}

// TypeFacts is what lifecycle writes on a NodeClaim whose instance has the type.
type TypeFacts struct {
	Capacity    corev1.ResourceList `json:"capacity"`
	Allocatable corev1.ResourceList `json:"allocatable"`
	// Labels are set by the type alone; zone and capacity type come from the instance.
	Labels map[string]string `json:"labels"`
	// ZoneIDs maps zones to zone ids (topology.k8s.aws/zone-id).
	ZoneIDs map[string]string `json:"zoneIds,omitempty"`
}
