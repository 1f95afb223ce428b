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

// HasPriceLimits reports whether anybody limits what nodes cost: the settings, or the
// annotation of a NodePool, even one that cannot be read.
func HasPriceLimits(s *planning.Snapshot) bool {
	return s.Settings.PriceLimit != nil || slices.ContainsFunc(s.NodePools, func(np karpenter.NodePool) bool {
		_, limited := np.Annotations[poolpolicy.PriceLimit]
		return limited
	})
}

// nodePrices are what the nodes of a snapshot cost.
type nodePrices struct {
	types instancetypes.InstanceTypes
	// known are the types of pools and classes, by name.
	known map[[2]string]map[string]*instancetypes.Type
}

// priceLimits is what nodes may cost. There is none where nobody limits that.
type priceLimits struct {
	nodePrices
	// priceIndex is the place of the price in the axis.
	priceIndex int
	// clusterLimit is what all managed nodes may cost together; nil without such a limit.
	clusterLimit *packing.Pool
	// unpricedNodes names a node of each pool whose price nobody knows, and stranger one of
	// any pool: who cannot count must not spend.
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
		m.clusterLimit = &packing.Pool{Left: make([]int64, len(a.names)), Nodes: packing.Unlimited}
		for i := range m.clusterLimit.Left {
			m.clusterLimit.Left[i] = packing.Unlimited
		}
		m.clusterLimit.Left[at] = planning.LimitToMicrodollars(*limit)
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
		if m.clusterLimit.Left[at] -= price; !known {
			m.unpricedNode = firstName(m.unpricedNode, node.Name)
		}
	}
	return m
}

// firstName is the name that comes first: whom a refusal names must not depend on the
// order of the nodes.
func firstName(was, name string) string {
	if was == "" {
		return name
	}
	return min(was, name)
}

// refusePool is why a pool launches nothing while money is limited; "" where it may.
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
	return fmt.Sprintf("what nodes cost is limited, and the price of node %s is not known: write it on its NodeClaim as %s", stranger, planning.PriceAnnotation)
}

// poolLimit is what the nodes of a pool may cost together; Unlimited where it says
// nothing, or nothing that can be read.
func (m *priceLimits) poolLimit(np *karpenter.NodePool) int64 {
	if limit, err := poolpolicy.ReadPriceLimit(np.Annotations); err == nil && limit != nil {
		return planning.LimitToMicrodollars(*limit)
	}
	return packing.Unlimited
}

// limitsPool reports whether what the nodes of a pool cost is limited.
func (m *priceLimits) limitsPool(np *karpenter.NodePool) bool {
	return m != nil && (m.clusterLimit != nil || m.poolLimit(np) != packing.Unlimited)
}

// addHighestPrice is a capacity with the dearest of the offers.
func (m *priceLimits) addHighestPrice(capacity []int64, offers []packing.Offer) []int64 {
	out := slices.Clone(capacity)
	for _, o := range offers {
		price, _ := planning.PriceToMicrodollars(o.Price)
		out[m.priceIndex] = max(out[m.priceIndex], price)
	}
	return out
}

// sumPlannedPrices is what planned nodes may come to.
func sumPlannedPrices(nodes []planning.PlannedNode) (sum int64) {
	for i := range nodes {
		price, _ := planning.PriceToMicrodollars(planning.HighestPrice(nodes[i].Offerings))
		sum += price
	}
	return sum
}

// filterAffordable narrows the options of a node, of which so many are wanted, to what is
// left for them, and says how many that is.
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

// priceBudget is what the nodes of a static pool may cost beside what is planned.
func (w *state) priceBudget(p *pool, beside, more []planning.PlannedNode) int64 {
	left := w.remainingLimits(p.object).Left[w.priceLimits.priceIndex]
	if w.priceLimits.clusterLimit != nil {
		left = min(left, w.priceLimits.clusterLimit.Left[w.priceLimits.priceIndex]-sumPlannedPrices(beside)-sumPlannedPrices(more))
	}
	return left
}

// addPlainCandidates adds the columns of a type that is not reserved: one, or where money is
// limited one for each way to pay, so that spot does not count for what it would cost
// on demand.
func (w *state) addPlainCandidates(p *pool, c candidate, of packing.Column) {
	if !p.priced {
		w.addVariantCandidates(p, c, of)
		return
	}
	for _, capacityType := range []string{karpenter.CapacityTypeSpot, karpenter.CapacityTypeOnDemand} {
		one := of
		one.Offers = slices.DeleteFunc(slices.Clone(of.Offers), func(o packing.Offer) bool { return w.zoneCapacityTypes[o.Plane].CapacityType != capacityType })
		if len(one.Offers) == 0 {
			continue
		}
		one.Flexible = wantedTypeCount(capacityType)
		one.Room = slices.Clone(of.Room) // Daemons are taken off each on its own.
		one.Capacity = w.priceLimits.addHighestPrice(of.Capacity, one.Offers)
		w.addVariantCandidates(p, c, one)
	}
}

// explainPriceLimit says that money keeps the cheapest of the columns from being bought; ""
// where something else does.
func (w *state) explainPriceLimit(p *pool, large packing.Set, left packing.Pool) string {
	if !p.priced {
		return ""
	}
	at, cheapest := w.priceLimits.priceIndex, -1
	large.Each(func(k int) bool {
		if cheapest < 0 || w.problem.Columns[k].Capacity[at] < w.problem.Columns[cheapest].Capacity[at] {
			cheapest = k
		}
		return true
	})
	price := w.problem.Columns[cheapest].Capacity[at]
	say := func(name string, limit, left int64) string {
		return fmt.Sprintf("%s of %s an hour: %s are taken, and the cheapest node, %s, adds up to %s",
			name, formatDollars(limit), formatDollars(limit-left), w.candidates[cheapest].instanceType.Name, formatDollars(price))
	}
	switch {
	case left.Left[at] != packing.Unlimited && price > left.Left[at]:
		return say("its "+poolpolicy.PriceLimit, w.priceLimits.poolLimit(p.object), left.Left[at])
	case left.Within != nil && price > left.Within.Left[at]:
		return say("the cluster's price limit", planning.LimitToMicrodollars(*w.snapshot.Settings.PriceLimit), left.Within.Left[at])
	}
	return ""
}

func formatDollars(micro int64) string { return fmt.Sprintf("$%.4f", float64(micro)/1e6) }

// sortedClassNames are the names of the classes that a stock has types for.
func sortedClassNames(stock instancetypes.InstanceTypes) []string {
	return slices.Sorted(maps.Keys(stock.ByNodeClass))
}

// FindMissingPrices are the prices, in US dollars an hour, of launched claims that do not say
// their own, where money is limited: the door has no catalogue to look them up in.
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

// priceForLimits is the price that a node counts for in price limits; false if it is unknown. It is
// the price of the launched offering, and before the launch the highest price that the
// launch allows. A node with neither, such as one of Karpenter's, counts with the current
// price of its offering, or with the highest price of its type if the offering is gone.
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

// catalogPrice is what the stock asks for a node like this, in US dollars an hour.
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
		if o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpenter.CapacityTypeLabelKey] &&
			(o.Reservation == "" || o.Reservation == reservation) {
			return o.PricePerHour, true
		}
		price, known = max(price, o.PricePerHour), true
	}
	return price, known
}

// findType finds a node's type, as its own pool and class have it if they do.
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

// typesByName are those of a pool and class, by name.
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
