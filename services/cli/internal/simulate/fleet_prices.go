package simulate

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// prices are what nodes cost, in US dollars an hour. What was once sold keeps its
// price, so that a node of a class that changes still costs something.
type prices map[soldOffering]float64

// soldOffering is what is sold, to all pools or to one for which a NodeOverlay makes it
// something else.
type soldOffering struct {
	event.Offering
	reservation, pool string
}

func (p prices) add(stock instancetypes.InstanceTypes) {
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
				p[soldOffering{o.Offering, o.Reservation, pool}] = price
			}
		}
	}
}

func (p prices) priceOf(n *planning.Node) float64 {
	var g soldOffering
	g.InstanceType, g.Zone, g.CapacityType = n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone], n.Labels[karpenter.CapacityTypeLabelKey]
	if g.CapacityType == "" {
		// Nodes that nobody manages do not say how they were bought.
		g.CapacityType = karpenter.CapacityTypeOnDemand
	}
	g.reservation, g.pool = n.Labels[karpenter.LabelCapacityReservationID], n.NodePool
	if price, known := p[g]; known {
		return price
	}
	g.pool = ""
	return p[g]
}
