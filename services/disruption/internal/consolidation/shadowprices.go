package consolidation

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// ShadowPrices are the hourly prices of a core and of a byte of memory, in US dollars, at which no
// instance type is worth more than it costs. A node that costs more than its pods are worth at
// these prices wastes the difference.
type ShadowPrices struct{ Core, Byte float64 }

// NewShadowPrices computes the prices at which the pods of all nodes together are worth most: the
// dual of launching the cheapest capacity for them, if nodes and pods were divisible.
func NewShadowPrices(s *planning.Snapshot, stock instancetypes.InstanceTypes) ShadowPrices {
	var cores, bytes float64
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Claim != "" {
			cores += amountOf(n.Used, corev1.ResourceCPU) - amountOf(n.DaemonRequests, corev1.ResourceCPU)
			bytes += amountOf(n.Used, corev1.ResourceMemory) - amountOf(n.DaemonRequests, corev1.ResourceMemory)
		}
	}
	var sold []packing.PricedCapacity
	for _, g := range ordinaryTypes(s, stock) {
		sold = append(sold, packing.PricedCapacity{Capacity: []float64{g.cores, g.bytes}, Price: g.price})
	}
	prices := packing.ShadowPrices([]float64{max(cores, 0), max(bytes, 0)}, sold)
	return ShadowPrices{Core: prices[0], Byte: prices[1]}
}

// PodsValue returns the value of a node's pods, in US dollars an hour.
func (w ShadowPrices) PodsValue(n *planning.Node) float64 {
	cores := amountOf(n.Used, corev1.ResourceCPU) - amountOf(n.DaemonRequests, corev1.ResourceCPU)
	bytes := amountOf(n.Used, corev1.ResourceMemory) - amountOf(n.DaemonRequests, corev1.ResourceMemory)
	return w.Core*max(cores, 0) + w.Byte*max(bytes, 0)
}

// WastePerPod returns the waste of the nodes that cost more than their pods are worth, divided by
// their pods, in US dollars an hour; 0 if there are no such nodes.
func (w ShadowPrices) WastePerPod(nodes []*candidate.Candidate) float64 {
	waste, pods := 0.0, 0
	for _, c := range nodes {
		if over := c.Price - w.PodsValue(c.Node); over > 0 {
			waste, pods = waste+over, pods+c.Pods
		}
	}
	return waste / float64(max(pods, 1))
}

// pricedType is an instance type's capacity and its lowest price.
type pricedType struct {
	cores, bytes, price float64
	// ordinary reports that it is neither exotic nor reserved.
	ordinary bool
}

// ordinaryTypes lists the ordinary instance types of all NodePools that are not static, with the
// capacity that DaemonSets leave. Reservations are paid for anyway and do not determine market
// prices.
func ordinaryTypes(s *planning.Snapshot, stock instancetypes.InstanceTypes) []pricedType {
	var daemons pricedType
	for i := range s.DaemonSets {
		daemons.cores += amountOf(s.DaemonSets[i].Requests, corev1.ResourceCPU)
		daemons.bytes += amountOf(s.DaemonSets[i].Requests, corev1.ResourceMemory)
	}
	var out []pricedType
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		if pool.IsStatic() || pool.Spec.Template.Spec.NodeClassRef == nil {
			continue
		}
		for _, g := range listTypes(pool, stock) {
			if g.cores, g.bytes = g.cores-daemons.cores, g.bytes-daemons.bytes; g.ordinary && g.cores > 0 && g.bytes > 0 {
				out = append(out, g)
			}
		}
	}
	return out
}

// listTypes lists the instance types that a NodePool may launch: each with its lowest price, and
// again with the lowest price of its reservations.
func listTypes(pool *karpenter.NodePool, stock instancetypes.InstanceTypes) []pricedType {
	var out []pricedType
	wanted := planning.NewNodeClaimRequirements(pool.Spec.Template.Spec.Requirements)
	types := stock.TypesForPool(pool.Name, pool.Spec.Template.Spec.NodeClassRef.Name)
	for k := range types {
		t := &types[k]
		if !matchesLabels(t.Labels, wanted) {
			continue
		}
		g := pricedType{cores: amountOf(t.Allocatable, corev1.ResourceCPU), bytes: amountOf(t.Allocatable, corev1.ResourceMemory)}
		for _, reserved := range []bool{false, true} {
			if g.price = lowestPrice(t, wanted, reserved); g.price > 0 {
				g.ordinary = !reserved && !t.Exotic
				out = append(out, g)
			}
		}
	}
	return out
}

// lowestPrice returns the price of the cheapest offering of the instance type that the NodePool may
// launch, or 0.
func lowestPrice(t *instancetypes.Type, wanted planning.Requirements, reserved bool) float64 {
	least := 0.0
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if !o.IsBuyable() || (o.Reservation != "") != reserved || !(o.PricePerHour > 0) || least > 0 && o.PricePerHour >= least {
			continue
		}
		if matchesLabels(offerLabels(o), wanted) {
			least = o.PricePerHour
		}
	}
	return least
}

// offerLabels returns the labels that an offering gives to a node.
func offerLabels(o *instancetypes.InstanceOffering) map[string]string {
	return map[string]string{
		corev1.LabelTopologyZone: o.Zone, karpenter.CapacityTypeLabelKey: o.CapacityType, karpenter.LabelTopologyZoneID: o.ZoneID,
	}
}

// matchesLabels reports whether no label violates the requirements.
func matchesLabels(labels map[string]string, wanted planning.Requirements) bool {
	for key, values := range wanted {
		if value, ok := labels[key]; ok && !values.Has(value) {
			return false
		}
	}
	return true
}

func amountOf(of corev1.ResourceList, name corev1.ResourceName) float64 {
	q := of[name]
	return q.AsApproximateFloat64()
}
