package packing

import (
	"math"
	"slices"
)

// Unlimited is the remaining quota of a resource without a limit.
const Unlimited = math.MaxInt64

// Problem is the input of the packer. Amounts are Dims integers in the caller's units and order.
type Problem struct {
	Dims       int
	Pools      []Pool
	Candidates []CandidateType
	Nodes      []Node
	Rules      []Rule
	// ZoneQuotas are the IP quotas of zones for new nodes.
	ZoneQuotas []ZoneQuota
	// Reservations is how many more nodes each reservation can launch.
	Reservations []int
	// Policy has the settings. The zero value ignores resilience and tries a single order.
	Policy Policy
}

// Pool is the limits that the candidates of a NodePool share.
type Pool struct {
	// Quota is the remaining quota by resource; Unlimited if there is no limit.
	Quota []int64
	// Nodes is how many nodes may still be added.
	Nodes int64
	// Shared is a quota that several pools share; nodes must fit into it too. It is nil if there is no
	// such quota, and has no Shared itself.
	Shared *Pool
	// ZoneQuotas maps each zone-capacity type to 1 + the index of the zone quota that nodes there use;
	// 0 or a missing entry means no zone quota.
	ZoneQuotas []int
	// Enough reports whether the candidates offer enough variety for the pool's minValues; nil if any
	// candidate is enough.
	Enough func(candidates Set, zoneCapacityTypes uint64) bool
}

// CandidateType is one way to buy nodes: an instance type in a pool.
type CandidateType struct {
	Pool int
	// Stage is the order of use: a candidate is only used for pods that no candidate of a lower stage
	// can hold.
	Stage int
	// MixedStage replaces Stage if Policy.MixStages is set.
	MixedStage int
	// Allocatable is the capacity for pods. Capacity is what the node counts for in limits; it may be
	// nil if the pool has none.
	Allocatable, Capacity []int64
	// Prices are the zone-capacity types (pairs of a zone and a capacity type) in which the
	// candidate can be bought, with prices.
	Prices []ZonePrice
	// Flexible is how many candidates should be able to hold the pods planned for this one, so that the
	// plan survives a shortage of one type.
	Flexible int
	// Reservation is 1 + the index of the reservation that the candidate uses; 0 for none.
	Reservation int
	// zoneCapacityTypes is the bit set of the zone-capacity types in Prices.
	zoneCapacityTypes uint64
	// lowestPrice is the lowest price in Prices.
	lowestPrice float64
	// tier is the original Stage: only candidates of one tier can replace each other.
	tier int
}

// ZonePrice is a price in one zone-capacity type, in US dollars per hour.
type ZonePrice struct {
	ZoneCapacityType int
	Price            float64
}

// Node is an existing node.
type Node struct {
	// Free is the free capacity.
	Free []int64
	// RuleCounts are the counts of running pods for the rules.
	RuleCounts []RuleCount
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

// RuleCount counts the pods on a node for one rule.
type RuleCount struct {
	Rule int32
	// OwnersInside counts owners that are members, and OwnersOutside owners that are not.
	OwnersInside, OwnersOutside, Members int32
}

// RuleRole is the role of a pod group's pods in a rule.
type RuleRole struct {
	Rule          int32
	Owner, Member bool
}

// Group is a number of equal pods.
type Group struct {
	// Requests is the request of one pod.
	Requests []int64
	// Candidates and Nodes are where the pods may go; ZoneCapacityTypes limits where nodes of the
	// candidates may be.
	Candidates        Set
	Nodes             Set
	ZoneCapacityTypes uint64
	Roles             []RuleRole
	// AffinityRules are rules that need a member on the node already, or no member anywhere if the pod
	// group is a member itself: affinity over host names.
	AffinityRules []int32
	// NeverFirst is true if the affinity rules need a member on the node even while no member is anywhere.
	NeverFirst bool
	Count      int
}

// GroupCount is a number of a pod group's pods on one node.
type GroupCount struct{ Group, Count int }

// Bin is a new node.
type Bin struct {
	// Candidate is the cheapest candidate that holds the pods.
	Candidate int
	// ZoneCapacityTypes are the zone-capacity types in which the node may be.
	ZoneCapacityTypes uint64
	Pods              []GroupCount
	// Candidates are all candidates that the pods allow, of any size.
	Candidates Set
	used       []int64
	// zoneQuota is 1 + the index of the zone quota that the node uses; 0 for none.
	zoneQuota int
	// extra is by how much the node may exceed its planned capacity in limited resources.
	extra []int64
	// buyable is the set of candidates to buy the node from, once extra is known.
	buyable Set
}

// Policy sets the trade-off between price and resilience.
type Policy struct {
	// MaxShare is the maximum share of a plan's value on one node; 0 for no maximum. Nodes with at
	// most SmallNode of the first resource are exempt.
	MaxShare  float64
	SmallNode int64
	// Premium is how much more a plan that respects MaxShare may cost, as a fraction of the price.
	Premium float64
	// EqualPremium replaces Premium if all pods are equal.
	EqualPremium float64
	// ShareCost rates resilience per node: a node with the share s of the plan's value is rated as if
	// it cost s times this fraction more.
	ShareCost float64
	// FlexibleCost is the fraction by which a candidate with too few alternatives is rated more
	// expensive.
	FlexibleCost float64
	// SaveLimits minimizes the use of limits instead of the price. It is for pods that otherwise do
	// not fit into the limits.
	SaveLimits bool
	// SmallestFirst places pods one by one, the smallest first, each where it uses the least of the
	// limits. It places as many pods as possible under limits.
	SmallestFirst bool
	// MixStages opens nodes that only some pods need for all pods, so that the others need no further
	// node.
	MixStages bool
	// MaxNodes is the maximum number of nodes that PlaceOnNew may add; 0 for no maximum.
	MaxNodes int
	// Effort is the number of steps after which no further orders are tried, and Budget the number
	// after which the plan stays partial. A step checks a pod group, a bin or a candidate, and was
	// measured at 5 to 17 ns.
	Effort, Budget int
}

// CountOfferings returns the number of the candidate's offerings in some zone-capacity types.
func (c *CandidateType) CountOfferings(zoneCapacityTypes uint64) int {
	n := 0
	for _, o := range c.Prices {
		n += int(zoneCapacityTypes >> o.ZoneCapacityType & 1)
	}
	return n
}

// priceIn returns the lowest price in some zone-capacity types; infinite if none exists.
func (c *CandidateType) priceIn(zoneCapacityTypes uint64) float64 {
	if c.zoneCapacityTypes&^zoneCapacityTypes == 0 && c.zoneCapacityTypes != 0 {
		return c.lowestPrice
	}
	best := math.Inf(1)
	for _, o := range c.Prices {
		if zoneCapacityTypes&(1<<o.ZoneCapacityType) != 0 && o.Price < best {
			best = o.Price
		}
	}
	return best
}

// fitsInto reports whether need fits into the free capacity. Nothing fits into a negative one, not
// even a need of zero.
func fitsInto(need, free []int64) bool {
	for i, n := range need {
		if n > free[i] || free[i] < 0 {
			return false
		}
	}
	return true
}

// FitsNode reports whether one more node of that capacity fits into the limits.
func (p *Pool) FitsNode(capacity []int64) bool {
	if p.Nodes <= 0 {
		return false
	}
	for i, c := range capacity {
		if left := p.quotaOf(i); left != Unlimited && c > left {
			return false
		}
	}
	return true
}

// quotaOf returns the remaining quota of a resource, including the shared quota.
func (p *Pool) quotaOf(resource int) int64 {
	if p.Shared == nil {
		return p.Quota[resource]
	}
	return min(p.Quota[resource], p.Shared.Quota[resource])
}

// SubtractNode subtracts an existing node from the quota.
func (p *Pool) SubtractNode(capacity []int64) { p.subtract(capacity, 1) }

// AddBackNode adds a node that no longer counts back to the pool's quota, but not to the shared one.
func (p *Pool) AddBackNode(capacity []int64) {
	shared := p.Shared
	p.Shared = nil
	p.subtract(capacity, -1)
	p.Shared = shared
}

// subtract subtracts a node; sign is 1, or -1 to add it back.
func (p *Pool) subtract(capacity []int64, sign int64) {
	if p.Nodes != Unlimited {
		p.Nodes -= sign
	}
	for i, c := range capacity {
		if p.Quota[i] != Unlimited {
			p.Quota[i] -= sign * c
		}
	}
	if p.Shared != nil {
		p.Shared.subtract(capacity, sign)
	}
}

// copyPools returns copies of the pools. Copies of pools with a shared quota share one copy of it.
func copyPools(pools []Pool) []Pool {
	out, copies := slices.Clone(pools), map[*Pool]*Pool{}
	for i := range out {
		out[i].Quota = slices.Clone(out[i].Quota)
		shared := out[i].Shared
		if shared == nil {
			continue
		}
		if copies[shared] == nil {
			copies[shared] = &Pool{Quota: slices.Clone(shared.Quota), Nodes: shared.Nodes}
		}
		out[i].Shared = copies[shared]
	}
	return out
}

// DefaultPolicy pays up to 3 % more for a plan in which no node carries more than a third (1 % if all
// pods are equal), and 3 % more for a node with enough alternative types. Its budget is 10 to 35 s of one core.
var DefaultPolicy = Policy{
	MaxShare: 1.0 / 3, SmallNode: 8000, Premium: 0.03, EqualPremium: 0.01, ShareCost: 0.05, FlexibleCost: 0.03, Effort: 100e6, Budget: 2e9,
}
