package packing

import (
	"math"
	"slices"
)

// Unlimited is the remaining quota of a resource without a limit.
const Unlimited = math.MaxInt64

// Problem is the input of the packer. Amounts are Dims integers in the caller's units and order.
type Problem struct {
	Dims    int
	Pools   []Pool
	Columns []Column
	Nodes   []Node
	Rules   []Rule
	// Rations are the IP quotas of zones for new nodes.
	Rations []Ration
	// Supplies is how many more nodes each reservation can launch.
	Supplies []int
	// Policy has the settings. The zero value ignores resilience and tries a single order.
	Policy Policy
}

// Pool is the limits that columns share.
type Pool struct {
	// Left is the remaining quota by resource; Unlimited if there is no limit.
	Left []int64
	// Nodes is how many nodes may still be added.
	Nodes int64
	// Within is a quota that several pools share; nodes must fit into it too. It is nil if there is no
	// such quota, and has no Within itself.
	Within *Pool
	// Rations maps each plane to 1 + the index of the ration that nodes there use; 0 or a missing
	// entry means no ration.
	Rations []int
	// Enough reports whether the columns offer enough variety for the pool's minValues; nil if any
	// column is enough.
	Enough func(columns Set, planes uint64) bool
}

// Column is one way to buy nodes: an instance type in a pool.
type Column struct {
	Pool int
	// Stage is the order of use: a column is only used for pods that no column of a lower stage can
	// hold.
	Stage int
	// Mixed replaces Stage if Policy.Mixed is set.
	Mixed int
	// Room is the capacity for pods. Capacity is what the node counts for in limits; it may be nil if
	// the pool has none.
	Room, Capacity []int64
	// Offers are the planes (zone and capacity type) in which the column can be bought, with prices.
	Offers []Offer
	// Flexible is how many columns should be able to hold the pods planned for this one, so that the
	// plan survives a shortage of one type.
	Flexible int
	// Supply is 1 + the index of the reservation that the column uses; 0 for none.
	Supply int
	// planes is the bit set of the planes in Offers.
	planes uint64
	// least is the lowest price in Offers.
	least float64
	// shelf is the original Stage: only columns of one shelf can replace each other.
	shelf int
}

// Offer is a price in one plane, in US dollars per hour.
type Offer struct {
	Plane int
	Price float64
}

// Node is an existing node.
type Node struct {
	// Room is the free capacity.
	Room []int64
	// Tallies are the counts of running pods for the rules.
	Tallies []Tally
}

// Rule bounds how many of certain pods, its members, may share a node with certain other pods, its
// owners. Required anti-affinity over host names has the limits 1 and 0; topology spread has the skew
// as both limits; a host port is a rule too.
type Rule struct {
	// WithMember is the maximum number of members on a node with an owner that is a member itself,
	// including that owner. WithOther is the maximum with an owner that is not a member.
	WithMember, WithOther int32
	// Soft rules bind only their owners: further members may join later.
	Soft bool
}

// Tally counts the pods on a node for one rule.
type Tally struct {
	Rule int32
	// Inside counts owners that are members, and Outside owners that are not.
	Inside, Outside, Members int32
}

// Mark is the role of a lot's pods in a rule.
type Mark struct {
	Rule          int32
	Owner, Member bool
}

// Lot is a number of equal pods.
type Lot struct {
	// Need is the request of one pod.
	Need []int64
	// Columns and Nodes are where the pods may go; Planes limits where nodes of the columns may be.
	Columns Set
	Nodes   Set
	Planes  uint64
	Marks   []Mark
	// Beside are rules that need a member on the node already, or no member anywhere if the lot is a
	// member itself: affinity over host names.
	Beside []int32
	Count  int
}

// Part is a number of a lot's pods on one node.
type Part struct{ Lot, Count int }

// Bin is a new node.
type Bin struct {
	// Column is the cheapest column that holds the pods.
	Column int
	// Planes are the planes in which the node may be.
	Planes uint64
	Parts  []Part
	// Columns are all columns that the pods allow, of any size.
	Columns Set
	used    []int64
	// ration is 1 + the index of the ration that the node uses; 0 for none.
	ration int
	// extra is by how much the node may exceed its planned capacity in limited resources.
	extra []int64
	// choice is the set of columns to buy the node from, once extra is known.
	choice Set
}

// Policy sets the trade-off between price and resilience.
type Policy struct {
	// MaxShare is the maximum share of a plan's value on one node; 0 for no maximum. Nodes with at
	// most SmallRoom of the first resource are exempt.
	MaxShare  float64
	SmallRoom int64
	// Premium is how much more a plan that respects MaxShare may cost, as a fraction of the price.
	Premium float64
	// EqualPremium is how much more a plan for equal pods may cost than the best plan of one column,
	// as a fraction of the price.
	EqualPremium float64
	// ShareCost rates resilience per node: a node with the share s of the plan's value is rated as if
	// it cost s times this fraction more.
	ShareCost float64
	// FlexibleCost is the fraction by which a column with too few alternatives is rated more
	// expensive.
	FlexibleCost float64
	// Tight minimizes the use of limits instead of the price. It is for pods that otherwise do not fit
	// into the limits.
	Tight bool
	// SmallFirst places pods one by one, the smallest first, each where it uses the least of the
	// limits. It places as many pods as possible under limits.
	SmallFirst bool
	// Mixed opens nodes that only some pods need for all pods, so that the others need no further
	// node.
	Mixed bool
	// Nodes is the maximum number of nodes that Open may add; 0 for no maximum.
	Nodes int
	// Effort is the number of steps after which no further orders are tried, and Budget the number
	// after which the plan stays partial. A step checks a lot, a bin or a column, and was measured at
	// 5 to 17 ns.
	Effort, Budget int
}

// Sold returns the number of the column's offers in some planes.
func (c *Column) Sold(planes uint64) int {
	n := 0
	for _, o := range c.Offers {
		n += int(planes >> o.Plane & 1)
	}
	return n
}

// price returns the lowest price in some planes; infinite if there is no offer.
func (c *Column) price(planes uint64) float64 {
	if c.planes&^planes == 0 && c.planes != 0 {
		return c.least
	}
	best := math.Inf(1)
	for _, o := range c.Offers {
		if planes&(1<<o.Plane) != 0 && o.Price < best {
			best = o.Price
		}
	}
	return best
}

// fits reports whether need fits into room. Nothing fits into negative room, not even a need of zero.
func fits(need, room []int64) bool {
	for i, n := range need {
		if n > room[i] || room[i] < 0 {
			return false
		}
	}
	return true
}

// Holds reports whether one more node of that capacity fits into the limits.
func (p *Pool) Holds(capacity []int64) bool {
	if p.Nodes <= 0 {
		return false
	}
	for i, c := range capacity {
		if left := p.left(i); left != Unlimited && c > left {
			return false
		}
	}
	return true
}

// left returns the remaining quota of a resource, including the shared quota.
func (p *Pool) left(resource int) int64 {
	if p.Within == nil {
		return p.Left[resource]
	}
	return min(p.Left[resource], p.Within.Left[resource])
}

// Count subtracts an existing node from the quota.
func (p *Pool) Count(capacity []int64) { p.take(capacity, 1) }

// Release adds a node that no longer counts back to the pool's quota, but not to the shared one.
func (p *Pool) Release(capacity []int64) {
	within := p.Within
	p.Within = nil
	p.take(capacity, -1)
	p.Within = within
}

// take subtracts a node; sign is 1, or -1 to add it back.
func (p *Pool) take(capacity []int64, sign int64) {
	if p.Nodes != Unlimited {
		p.Nodes -= sign
	}
	for i, c := range capacity {
		if p.Left[i] != Unlimited {
			p.Left[i] -= sign * c
		}
	}
	if p.Within != nil {
		p.Within.take(capacity, sign)
	}
}

// copied returns copies of the pools. Copies of pools with a shared quota share one copy of it.
func copied(pools []Pool) []Pool {
	out, shared := slices.Clone(pools), map[*Pool]*Pool{}
	for i := range out {
		out[i].Left = slices.Clone(out[i].Left)
		within := out[i].Within
		if within == nil {
			continue
		}
		if shared[within] == nil {
			shared[within] = &Pool{Left: slices.Clone(within.Left), Nodes: within.Nodes}
		}
		out[i].Within = shared[within]
	}
	return out
}

// DefaultPolicy pays up to 5 % more for a plan in which no node carries more than a third, and 3 %
// more for a node with enough alternative types, but for equal pods at most 1 % more than the best
// plan of one column. Its budget is 10 to 35 s of one core.
var DefaultPolicy = Policy{
	MaxShare: 1.0 / 3, SmallRoom: 8000, Premium: 0.05, EqualPremium: 0.01, ShareCost: 0.05, FlexibleCost: 0.03, Effort: 100e6, Budget: 2e9,
}
