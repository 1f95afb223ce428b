package solver

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	poolpolicy "github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// HasPriceLimits reports whether the settings or any NodePool's annotation limit the price of nodes,
// even if the annotation is invalid.
func HasPriceLimits(s *planning.Snapshot) bool {
	return s.Settings.PriceLimit != nil || slices.ContainsFunc(s.NodePools, func(np karpenter.NodePool) bool {
		_, limited := np.Annotations[poolpolicy.PriceLimit]
		return limited
	})
}

// nodePrices looks up the prices of nodes.
type nodePrices struct {
	types instancetypes.InstanceTypes
	// known caches instance types by name, for each pair of NodePool and class.
	known map[[2]string]map[string]*instancetypes.Type
}

// priceLimits holds the price limits of the cluster and the prices of its nodes. It is nil if there
// is no limit.
type priceLimits struct {
	nodePrices
	// priceIndex is the index of the price in the resource index.
	priceIndex int
	// clusterLimit is the limit for all managed nodes together; nil if not set.
	clusterLimit *packing.Pool
	// unpricedNodes names a node with unknown price for each NodePool that has one, and unpricedNode
	// one of any NodePool. While a price is unknown, nothing is launched under the limit.
	unpricedNodes map[string]string
	unpricedNode  string
}

func newPriceLimits(s *planning.Snapshot, stock instancetypes.InstanceTypes, a resourceIndex) *priceLimits {
	at, limited := a.index[planning.PriceResource]
	if !limited {
		return nil
	}
	m := &priceLimits{priceIndex: at, nodePrices: nodePrices{stock, map[[2]string]map[string]*instancetypes.Type{}}, unpricedNodes: map[string]string{}}
	if limit := s.Settings.PriceLimit; limit != nil {
		m.clusterLimit = &packing.Pool{Quota: make([]int64, len(a.names)), Nodes: packing.Unlimited}
		for i := range m.clusterLimit.Quota {
			m.clusterLimit.Quota[i] = packing.Unlimited
		}
		m.clusterLimit.Quota[at] = planning.LimitToMicrodollars(*limit)
	}
	for i := range s.Nodes {
		node := &s.Nodes[i]
		price, known := m.priceForLimits(node)
		if !known {
			m.unpricedNodes[node.NodePool] = firstName(m.unpricedNodes[node.NodePool], node.Name)
		}
		if node.Claim == "" || m.clusterLimit == nil {
			continue
		}
		if m.clusterLimit.Quota[at] -= price; !known {
			m.unpricedNode = firstName(m.unpricedNode, node.Name)
		}
	}
	return m
}

// firstName returns the first of two names by alphabet, so that messages do not depend on the order
// of the nodes. An empty was is ignored.
func firstName(was, name string) string {
	if was == "" {
		return name
	}
	return min(was, name)
}

// refusePool returns why price limits keep a NodePool from launching nodes; "" if they do not.
func (m *priceLimits) refusePool(np *karpenter.NodePool) string {
	if m == nil {
		return ""
	}
	limit, err := poolpolicy.ReadPriceLimit(np.Annotations)
	if err != nil {
		return err.Error()
	}
	stranger := m.unpricedNode
	if name, odd := m.unpricedNodes[np.Name]; odd && limit != nil {
		stranger = name
	}
	if stranger == "" {
		return ""
	}
	return fmt.Sprintf("a price limit is set, and the price of node %s is unknown: set the annotation %s on its NodeClaim", stranger, planning.PriceAnnotation)
}

// poolLimit returns the price limit of a NodePool in microdollars an hour; Unlimited if it has none
// or it is invalid.
func (m *priceLimits) poolLimit(np *karpenter.NodePool) int64 {
	if limit, err := poolpolicy.ReadPriceLimit(np.Annotations); err == nil && limit != nil {
		return planning.LimitToMicrodollars(*limit)
	}
	return packing.Unlimited
}

// limitsPool reports whether a price limit applies to the NodePool's nodes.
func (m *priceLimits) limitsPool(np *karpenter.NodePool) bool {
	return m != nil && (m.clusterLimit != nil || m.poolLimit(np) != packing.Unlimited)
}

// addHighestPrice returns a copy of capacity with the highest price of the offers.
func (m *priceLimits) addHighestPrice(capacity []int64, offers []packing.ZonePrice) []int64 {
	out := slices.Clone(capacity)
	for _, o := range offers {
		price, _ := planning.PriceToMicrodollars(o.Price)
		out[m.priceIndex] = max(out[m.priceIndex], price)
	}
	return out
}

// sumPlannedPrices returns the sum of the highest possible prices of planned nodes, in microdollars
// an hour.
func sumPlannedPrices(nodes []planning.PlannedNode) (sum int64) {
	for i := range nodes {
		price, _ := planning.PriceToMicrodollars(planning.HighestPrice(nodes[i].Offerings))
		sum += price
	}
	return sum
}

// filterAffordable returns how many of the wanted nodes the remaining price limit allows, and the
// options that each of them can afford.
func filterAffordable(options []planning.PricedOffering, count int, left int64) ([]planning.PricedOffering, int) {
	cheapest, ok := planning.PriceToMicrodollars(options[0].PricePerHour)
	if !ok || left < cheapest {
		return nil, 0
	}
	if cheapest > 0 {
		count = int(min(int64(count), left/cheapest))
	}
	each := left / int64(count)
	return slices.DeleteFunc(slices.Clone(options), func(o planning.PricedOffering) bool {
		price, ok := planning.PriceToMicrodollars(o.PricePerHour)
		return !ok || price > each
	}), count
}

// priceBudget returns what static nodes of the pool may cost, in microdollars an hour, after the
// planned nodes in both lists.
func (w *state) priceBudget(p *pool, planned, more []planning.PlannedNode) int64 {
	left := w.remainingLimits(p.object).Quota[w.priceLimits.priceIndex]
	for i := range more {
		if more[i].NodePool == p.name {
			left -= sumPlannedPrices(more[i : i+1])
		}
	}
	if w.priceLimits.clusterLimit != nil {
		left = min(left, w.priceLimits.clusterLimit.Quota[w.priceLimits.priceIndex]-sumPlannedPrices(planned)-sumPlannedPrices(more))
	}
	return left
}

// addPlainCandidates adds the candidates of a type without reservation: one, or one for each capacity
// type if a price limit applies, so that spot does not count at the on-demand price.
func (w *state) addPlainCandidates(p *pool, c candidate, of packing.CandidateType) {
	if !p.priced {
		w.addVariantCandidates(p, c, of)
		return
	}
	for _, capacityType := range []string{karpenter.CapacityTypeSpot, karpenter.CapacityTypeOnDemand} {
		one := of
		one.Prices = slices.DeleteFunc(slices.Clone(of.Prices), func(o packing.ZonePrice) bool {
			return w.zoneCapacityTypes[o.ZoneCapacityType].CapacityType != capacityType
		})
		if len(one.Prices) == 0 {
			continue
		}
		one.Flexible = wantedTypeCount(capacityType)
		one.Allocatable = slices.Clone(of.Allocatable) // Daemons are subtracted from each separately.
		one.Capacity = w.priceLimits.addHighestPrice(of.Capacity, one.Prices)
		w.addVariantCandidates(p, c, one)
	}
}

// explainPriceLimit returns which price limit excludes the cheapest candidate; "" if none does.
func (w *state) explainPriceLimit(p *pool, large packing.Set, left packing.Pool) string {
	if !p.priced {
		return ""
	}
	at, cheapest := w.priceLimits.priceIndex, noIndex
	large.Each(func(k int) bool {
		if cheapest < 0 || w.problem.Candidates[k].Capacity[at] < w.problem.Candidates[cheapest].Capacity[at] {
			cheapest = k
		}
		return true
	})
	price := w.problem.Candidates[cheapest].Capacity[at]
	say := func(name string, limit, left int64) string {
		return fmt.Sprintf("%s of %s per hour: %s in use, and the cheapest node, %s, adds up to %s",
			name, formatDollars(limit), formatDollars(limit-left), w.candidates[cheapest].instanceType.Name, formatDollars(price))
	}
	switch {
	case left.Quota[at] != packing.Unlimited && price > left.Quota[at]:
		return say("its "+poolpolicy.PriceLimit, w.priceLimits.poolLimit(p.object), left.Quota[at])
	case left.Shared != nil && price > left.Shared.Quota[at]:
		return say("the cluster's price limit", planning.LimitToMicrodollars(*w.snapshot.Settings.PriceLimit), left.Shared.Quota[at])
	}
	return ""
}

func formatDollars(micro int64) string { return fmt.Sprintf("$%.4f", float64(micro)/1e6) }

// sortedClassNames returns the names of all node classes with instance types, sorted.
func sortedClassNames(stock instancetypes.InstanceTypes) []string {
	return slices.Sorted(maps.Keys(stock.ByNodeClass))
}

// FindMissingPrices returns the catalogue prices, in US dollars an hour, of launched NodeClaims
// that record no price, by NodeClaim name. It returns nil if there is no price limit. Admission
// needs these prices because it has no catalogue.
func FindMissingPrices(s planning.Snapshot, cat catalog.Catalogue) map[string]float64 {
	if !HasPriceLimits(&s) {
		return nil
	}
	wanted := map[string]bool{}
	silent := func(n *planning.Node) bool {
		_, planned := n.Capacity[planning.PriceResource]
		return n.Claim != "" && n.PricePerHour == 0 && !planned
	}
	for i := range s.Nodes {
		if silent(&s.Nodes[i]) {
			wanted[s.Nodes[i].Labels[corev1.LabelInstanceTypeStable]] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	cat.Types = slices.DeleteFunc(slices.Clone(cat.Types), func(t catalog.InstanceType) bool { return !wanted[t.Name] })
	b, out := nodePrices{instancetypes.New(s, cat), map[[2]string]map[string]*instancetypes.Type{}}, map[string]float64{}
	for i := range s.Nodes {
		if node := &s.Nodes[i]; silent(node) {
			if price, known := b.catalogPrice(node); known {
				out[node.Claim] = price
			}
		}
	}
	return out
}

// priceForLimits returns the price that a node counts for in price limits, in microdollars an hour;
// false if it is unknown. It is the price of the launched offering, or before the launch the highest
// price that the launch allows. A node with neither, such as one of Karpenter's, counts with the
// current price of its offering, or with the highest price of its type if the offering is gone.
func (b *nodePrices) priceForLimits(n *planning.Node) (int64, bool) {
	if n.PricePerHour > 0 {
		return planning.PriceToMicrodollars(n.PricePerHour)
	}
	if price, ok := n.Capacity[planning.PriceResource]; ok {
		return toInteger(planning.PriceResource, price), true
	}
	price, known := b.catalogPrice(n)
	if !known {
		return 0, false
	}
	return planning.PriceToMicrodollars(price)
}

// catalogPrice returns the current price of the node's offering, in US dollars an hour.
func (b *nodePrices) catalogPrice(n *planning.Node) (price float64, known bool) {
	t := b.findType(n)
	if t == nil {
		return 0, false
	}
	reservation := n.Labels[karpenter.LabelCapacityReservationID]
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if !(o.PricePerHour > 0) || math.IsInf(o.PricePerHour, 1) {
			continue
		}
		if o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpenter.CapacityTypeLabelKey] && o.Reservation == reservation {
			return o.PricePerHour, true
		}
		price, known = max(price, o.PricePerHour), true
	}
	return price, known
}

// findType returns the node's instance type: that of its own NodePool and class, or else of any
// class.
func (b *nodePrices) findType(n *planning.Node) *instancetypes.Type {
	name, class := n.Labels[corev1.LabelInstanceTypeStable], n.Labels[karpenter.LabelEC2NodeClass]
	if t := b.typesByName(n.NodePool, class)[name]; t != nil {
		return t
	}
	for _, class := range sortedClassNames(b.types) {
		if t := b.typesByName("", class)[name]; t != nil {
			return t
		}
	}
	return nil
}

// typesByName returns the types of a NodePool and class, by name.
func (b *nodePrices) typesByName(pool, class string) map[string]*instancetypes.Type {
	at := [2]string{pool, class}
	if got, ok := b.known[at]; ok {
		return got
	}
	types, out := b.types.TypesForPool(pool, class), map[string]*instancetypes.Type{}
	for i := range types {
		out[types[i].Name] = &types[i]
	}
	b.known[at] = out
	return out
}
