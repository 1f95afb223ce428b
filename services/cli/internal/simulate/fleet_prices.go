package simulate

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// prices are the prices of offerings, in US dollars per hour. Offerings that a class no longer
// has keep their prices, so that existing nodes still have one.
type prices map[offeringKey]float64

// offeringKey identifies an offering, of all pools or of one whose NodeOverlays change it.
type offeringKey struct {
	event.Offering
	reservation, pool string
}

func (p prices) addStock(stock instancetypes.InstanceTypes) {
	for _, types := range stock.ByNodeClass {
		p.addTypes(types, "")
	}
	for pool, types := range stock.ByNodePool {
		p.addTypes(types, pool)
	}
}

func (p prices) addTypes(types []instancetypes.Type, pool string) {
	for i := range types {
		for j := range types[i].Offerings {
			o := &types[i].Offerings[j]
			if price := o.PricePerHour; !math.IsNaN(price) && !math.IsInf(price, 0) && price >= 0 {
				p[offeringKey{o.Offering, o.Reservation, pool}] = price
			}
		}
	}
}

func (p prices) priceOf(n *planning.Node) float64 {
	var g offeringKey
	g.InstanceType, g.Zone, g.CapacityType = n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone], n.Labels[karpenter.CapacityTypeLabelKey]
	if g.CapacityType == "" {
		// Unmanaged nodes have no capacity type label.
		g.CapacityType = karpenter.CapacityTypeOnDemand
	}
	g.reservation, g.pool = n.Labels[karpenter.LabelCapacityReservationID], n.NodePool
	if price, known := p[g]; known {
		return price
	}
	g.pool = ""
	return p[g]
}
