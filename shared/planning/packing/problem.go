package packing

import (
	"math"
	"slices"
)

// Unlimited is the quota of a resource without a limit.
const Unlimited = math.MaxInt64

// Problem is the world that lots are packed into. Amounts are integers of the
// caller's units, Dims of them each, in the caller's order.
type Problem struct {
	Dims    int
	Pools   []Pool
	Columns []Column
	Nodes   []Node
	Rules   []Rule
	// Rations are what zones have left for new nodes.
	Rations []Ration
	// Supplies count how many more nodes of a reservation can be launched.
	Supplies []int
	// Policy holds the knobs. The zero value wants no resilience and tries one order.
	Policy Policy
}

// Pool is what columns share: limits.
type Pool struct {
	// Left is what may still be added by resource, Unlimited where there is none.
	Left []int64
	// Nodes is how many nodes may still be added.
	Nodes int64
	// Within is a quota that pools share: what they have must fit there as well. Nil is
	// none; it has none itself.
	Within *Pool
	// Rations are, by plane, 1 + the index of the ration that the pool's nodes take
	// from there; 0, or nothing, where none is kept.
	Rations []int
	// Enough says whether columns are varied enough for a node to have no other
	// choice; nil when any one is.
	Enough func(columns Set, planes uint64) bool
}

// Column is one way to buy nodes: an instance type in a pool.
type Column struct {
	Pool int
	// Stage orders the choice: a column is looked at only for pods that no column
	// of a lower stage can take.
	Stage int
	// Mixed is the stage that counts instead where the policy says so.
	Mixed int
	// Room is what pods may take; Capacity is what the node counts for in limits, and
	// may be left out where the pool has none.
	Room, Capacity []int64
	// Offers are the planes (places and ways to buy) that have it.
	Offers []Offer
	// Flexible is how many columns should hold whatever is planned for this one, so
	// that a shortage of one type does not matter.
	Flexible int
	// Supply is 1 + the index of the reservation that it uses up, 0 for none.
	Supply int
	// planes are those of Offers.
	planes uint64
	// least is the lowest of their prices.
	least float64
	// shelf is the stage as it was given: alternatives are of one shelf.
	shelf int
}

// Offer is a price on one plane, in US dollars per hour.
type Offer struct {
	Plane int
	Price float64
}

// Node is one that exists.
type Node struct {
	// Room is what is left on it.
	Room []int64
	// Tallies are what the pods that run there count for in the rules.
	Tallies []Tally
}

// Rule bounds how many of some pods, its members, may share a node with some
// pods, its owners. Required anti-affinity over host names is a rule with limits
// 1 and 0, topology spread one with the skew twice, and a host port one as well.
type Rule struct {
	// WithMember is how many members a node may hold beside an owner that is a
	// member itself, the owner included; WithOther, beside one that is not.
	WithMember, WithOther int32
	// Soft rules bind their owners only: another member may join later.
	Soft bool
}

// Tally is what a node holds of one rule.
type Tally struct {
	Rule int32
	// Inside and Outside count owners that are members and that are not.
	Inside, Outside, Members int32
}

// Mark is a lot's part in a rule.
type Mark struct {
	Rule          int32
	Owner, Member bool
}

// Lot is a number of equal pods.
type Lot struct {
	// Need is what one pod takes.
	Need []int64
	// Columns and Nodes are where it may go; Planes where the columns' nodes may be.
	Columns Set
	Nodes   Set
	Planes  uint64
	Marks   []Mark
	// Beside are rules of which a member must be on the node already, or nowhere at
	// all when the lot is a member itself: affinity over host names.
	Beside []int32
	Count  int
}

// Part is a number of a lot's pods on one node.
type Part struct{ Lot, Count int }

// Bin is a node to be launched.
type Bin struct {
	// Column is the cheapest way to buy it.
	Column int
	// Planes are where it may still be.
	Planes uint64
	Parts  []Part
	// Columns are all that its pods may run on, large enough or not.
	Columns Set
	used    []int64
	// ration is 1 + the index of the one that it takes from, 0 for none.
	ration int
	// extra is by how much it may turn out larger than planned in what is limited.
	extra []int64
	// choice is what it could be bought as, as soon as extra is known.
	choice Set
}

// Policy is how a plan trades price for resilience.
type Policy struct {
	// MaxShare is the largest part of a plan's worth that one node should carry;
	// nodes of up to SmallRoom of the first resource are exempt. 0 is no such wish.
	MaxShare  float64
	SmallRoom int64
	// Premium is how much dearer, as a part of the price, a plan may be that keeps to
	// MaxShare.
	Premium float64
	// EqualPremium is how much dearer, as a part of the price, a plan for equal pods may
	// be than one whose nodes are all of one column.
	EqualPremium float64
	// ShareCost weighs resilience node by node: one that carries the share s of the
	// plan counts as dearer by s times this.
	ShareCost float64
	// FlexibleCost is how much dearer, as a part of the price, a column counts for
	// having fewer alternatives than it should.
	FlexibleCost float64
	// Tight spends limits sparingly instead of money: it is for what did not fit
	// into the limits otherwise.
	Tight bool
	// SmallFirst places pods one by one, the smallest first, each where it uses least
	// of the limits: it is for having as many pods as possible under them.
	SmallFirst bool
	// Mixed lets nodes that only some pods need be opened for all, so that those
	// need no other.
	Mixed bool
	// Nodes is how many nodes Open may buy at most, 0 for any number.
	Nodes int
	// Effort is how many steps may be spent before no more orders are tried, and
	// Budget how many before the plan stays partial. A step is a look at a lot, a bin
	// or a column: five to seventeen nanoseconds, as measured.
	Effort, Budget int
}

// Sold counts the column's offers on some planes.
func (c *Column) Sold(planes uint64) int {
	n := 0
	for _, o := range c.Offers {
		n += int(planes >> o.Plane & 1)
	}
	return n
}

// price is that of the cheapest offer on some planes; infinite without any.
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

// fits reports whether need is inside of room. Negative room holds nothing, not
// even a need of nothing.
func fits(need, room []int64) bool {
	for i, n := range need {
		if n > room[i] || room[i] < 0 {
			return false
		}
	}
	return true
}

// Holds reports whether one more node of that capacity stays inside the limits.
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

// left is what may still be added of a resource, by the pool's own limits and by
// those that it shares.
func (p *Pool) left(resource int) int64 {
	if p.Within == nil {
		return p.Left[resource]
	}
	return min(p.Left[resource], p.Within.Left[resource])
}

// Count takes a node that exists off the quota.
func (p *Pool) Count(capacity []int64) { p.take(capacity, 1) }

// Release gives a node back that no longer counts. What the pool shares is not touched.
func (p *Pool) Release(capacity []int64) {
	within := p.Within
	p.Within = nil
	p.take(capacity, -1)
	p.Within = within
}

// take counts a node; sign is 1, or -1 to give it back.
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

// copied are the pools with quotas of their own to count down. What pools share, the
// copies share as well.
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

// DefaultPolicy pays up to five percent for a plan of which no node carries more
// than a third, and three for a node that enough types could be, but for equal pods no
// more than one percent above the best plan of one column. Its budget is 10 to 35 s of
// one core.
var DefaultPolicy = Policy{
	MaxShare: 1.0 / 3, SmallRoom: 8000, Premium: 0.05, EqualPremium: 0.01, ShareCost: 0.05, FlexibleCost: 0.03, Effort: 100e6, Budget: 2e9,
}
