package candidate

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// priceList finds the prices of nodes.
type priceList struct {
	stock instancetypes.InstanceTypes
	// types caches the instance types of each NodePool by name.
	types map[string]map[string]*instancetypes.Type
}

// nodePrice returns the price of a node of the NodePool in US dollars an hour, or 0 if it is
// unknown: a missing, negative or invalid price must never count as a saving.
func (p *priceList) nodePrice(n *planning.Node, pool *karpenter.NodePool) float64 {
	t := p.typesOf(pool)[n.Labels[corev1.LabelInstanceTypeStable]]
	if t == nil {
		return 0
	}
	reservation := n.Labels[karpenter.LabelCapacityReservationID]
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpenter.CapacityTypeLabelKey] &&
			(o.Reservation == "" || o.Reservation == reservation) {
			return validPrice(o.PricePerHour)
		}
	}
	return 0
}

func (p *priceList) typesOf(pool *karpenter.NodePool) map[string]*instancetypes.Type {
	if known, ok := p.types[pool.Name]; ok {
		return known
	}
	out := map[string]*instancetypes.Type{}
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
		types := p.stock.TypesForPool(pool.Name, ref.Name)
		for i := range types {
			out[types[i].Name] = &types[i]
		}
	}
	p.types[pool.Name] = out
	return out
}

func validPrice(price float64) float64 {
	if math.IsNaN(price) || math.IsInf(price, 0) || price < 0 {
		return 0
	}
	return price
}
