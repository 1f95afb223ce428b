package packing

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// maxExactSteps bounds the exact search, in pairs of remaining pods and the pods of one node. It takes less than
// 20 ms of one core, and allows batches of 13 different pods, of 20 pods in 6 shapes, or of thousands of equal pods.
const maxExactSteps = 2.5e6

// exactShareCost replaces Policy.ShareCost: of plans that cost about the same, the one with more and smaller nodes is better.
const exactShareCost = 0.01

// exactSearch finds the cheapest nodes for few pods. A load is how many pods of each group are placed together. Loads have
// numbers: 0 is no pod, and one more pod of the group i adds strides[i]. The cheapest nodes for a load are the cheapest
// node for a part of it and the cheapest nodes for the rest.
type exactSearch struct {
	s *stage
	// counts are the unplaced pods of each group, and most is how many of them fit on one node.
	counts, most, strides []int
	// nodes are the cheapest node for each load, and how it is rated; the price is infinite if the load fits on no node.
	nodes []ratedNode
	// needed are the dimensions in which pods request anything.
	needed []int
	// used and value are the requests and the value of the pods while a node is filled.
	used  []int64
	value float64
	// lists caches the candidates that pods of some segments may share. The key has one bit for each segment.
	lists map[uint64][]ratedNode
}

// ratedNode is a candidate and its rated price.
type ratedNode struct {
	candidate         int
	price             float64
	zoneCapacityTypes uint64
}

// openExactly opens the bins with the lowest rated price for all pods of the stage. It opens none and returns
// false if there are too many pods, if others follow, or if limits or quotas forbid the nodes.
func (s *stage) openExactly(first int) bool {
	if s.partial || s.p.problem.Policy.SaveLimits || s.p.zoneQuotasScarce {
		return false
	}
	s.orderGroups(orders[0])
	e := s.newExactSearch()
	if e == nil || !e.openCheapest(first) {
		return false
	}
	if !s.exceedsMaxShare(s.p.bins[first:]) {
		return true
	}
	cheapest := s.removeBins(first)
	s.enforceMaxShare = true
	if e.openCheapest(first) && s.p.sumCosts(s.p.bins[first:]) <= s.p.sumCosts(cheapest)*(1+s.premium()) {
		return true
	}
	s.removeBins(first)
	s.restoreBins(cheapest)
	return true
}

// newExactSearch prepares the search; nil if it would take too long.
func (s *stage) newExactSearch() *exactSearch {
	e := &exactSearch{s: s, counts: slices.Clone(s.unplaced), used: make([]int64, s.p.problem.Dims), lists: map[uint64][]ratedNode{}}
	steps, loads := 1.0, 1
	for i, n := range e.counts {
		most := s.countOnOneNode(i)
		e.most, e.strides = append(e.most, most), append(e.strides, loads)
		if steps *= float64((most+1)*(most+2)/2 + (n-most)*(most+1)); steps > maxExactSteps {
			return nil
		}
		loads *= n + 1
	}
	for r := range e.used {
		if slices.ContainsFunc(s.ids, func(id int) bool { return s.p.groups[id].Requests[r] > 0 }) {
			e.needed = append(e.needed, r)
		}
	}
	e.nodes = make([]ratedNode, loads)
	return e
}

// countOnOneNode returns how many pods of a group fit on one node of any candidate.
func (s *stage) countOnOneNode(i int) int {
	group, g, most := &s.p.groups[s.ids[i]], &s.segments[s.segmentOf[i]], 0
	for _, k := range s.candidates {
		if g.candidates.Has(k) {
			most = max(most, countFits(group.Requests, s.p.problem.Candidates[k].Allocatable, s.unplaced[i]))
		}
	}
	return most
}

// openCheapest opens the cheapest bins for all pods. If no nodes can hold them, or limits forbid one, it opens none and
// returns false.
func (e *exactSearch) openCheapest(first int) bool {
	loads, ok := e.findCheapest()
	for _, load := range loads {
		if !e.s.p.CanBuy(e.nodes[load].candidate) {
			e.s.removeBins(first)
			return false
		}
		e.openBin(load)
	}
	return ok
}

// openBin opens the cheapest bin for a load.
func (e *exactSearch) openBin(load int) {
	node := &e.nodes[load]
	var picks []pick
	for i := range e.strides {
		if n := load / e.strides[i] % (e.counts[i] + 1); n > 0 {
			picks = append(picks, pick{i, n})
		}
	}
	// The search needs neither the cost nor the value of the pods, which the greedy search counts.
	e.s.openBin(&option{candidate: node.candidate, zoneCapacityTypes: node.zoneCapacityTypes}, 0, picks)
}

// findCheapest returns the loads of the cheapest nodes for all pods, the most expensive node first; false if no nodes can
// hold all pods.
func (e *exactSearch) findCheapest() (loads []int, ok bool) {
	for i := range e.nodes {
		e.nodes[i] = ratedNode{candidate: -1, price: math.Inf(1)}
	}
	e.s.p.binCounts.reset()
	e.priceNodes(0, 0, 0, 0)
	costs, counts, taken := make([]float64, len(e.nodes)), make([]int32, len(e.nodes)), make([]int32, len(e.nodes))
	left := make([]int, len(e.counts))
	for all := 1; all < len(e.nodes); all++ {
		e.increment(left)
		best, count, part := math.Inf(1), int32(0), 0
		e.eachRange(left, func(from, to int) {
			e.s.p.usedSteps += to - from
			for try := from; try < to; try++ {
				cost, nodes := e.nodes[try].price+costs[all-try], counts[all-try]+1
				// A larger node is better than two that cost the same, because each node has overhead.
				if cost < best*(1-equalCost) || cost <= best*(1+equalCost) && nodes < count {
					best, count, part = cost, nodes, try
				}
			}
		})
		costs[all], counts[all], taken[all] = best, count, int32(part)
	}
	rest := len(e.nodes) - 1
	if math.IsInf(costs[rest], 1) {
		return nil, false
	}
	for rest > 0 {
		loads = append(loads, int(taken[rest]))
		rest -= int(taken[rest])
	}
	slices.SortFunc(loads, func(a, b int) int {
		return cmp.Or(cmp.Compare(e.nodes[b].price, e.nodes[a].price), cmp.Compare(a, b))
	})
	return loads, true
}

// increment counts to the next load.
func (e *exactSearch) increment(left []int) {
	for i := range left {
		if left[i]++; left[i] <= e.counts[i] {
			return
		}
		left[i] = 0
	}
}

// eachRange calls use with ranges of loads. They include each load within left that has a pod of left's last group and
// fits on one node.
func (e *exactSearch) eachRange(left []int, use func(from, to int)) {
	last := len(left) - 1
	for left[last] == 0 {
		last--
	}
	if last == 0 {
		use(1, min(left[0], e.most[0])+1)
		return
	}
	for n := 1; n <= min(left[last], e.most[last]); n++ {
		e.eachRangeWith(left, last-1, n*e.strides[last], use)
	}
}

// eachRangeWith is eachRange for a load and any further pods of the groups up to the given one.
func (e *exactSearch) eachRangeWith(left []int, group, load int, use func(from, to int)) {
	if e.nodes[load].candidate < 0 {
		return // With more pods it fits no node either.
	}
	if group == 0 {
		use(load, load+min(left[0], e.most[0])+1)
		return
	}
	for n := range min(left[group], e.most[group]) + 1 {
		e.eachRangeWith(left, group-1, load+n*e.strides[group], use)
	}
}

// priceNodes finds the cheapest node for a load with any further pods of the groups from the given one on. segments are the
// segments of its pods; the candidates before from in their list are too small.
func (e *exactSearch) priceNodes(group, load int, segments uint64, from int) {
	if group == len(e.counts) {
		return
	}
	e.priceNodes(group+1, load, segments, from)
	roles := e.s.p.groups[e.s.ids[group]].Roles
	with := segments | 1<<e.s.segmentOf[group]
	if with != segments {
		from = 0
	}
	n := 0
	for n < e.counts[group] && e.s.p.binCounts.countAllowed(roles, 1) > 0 {
		n++
		load += e.strides[group]
		e.addPods(group, 1)
		list := e.listNodes(with)
		for from < len(list) && !e.isUsable(&list[from], with) {
			from++
		}
		if from == len(list) {
			break
		}
		node := list[from]
		node.price *= 1 + exactShareCost*e.value/e.s.total
		e.nodes[load] = node
		e.priceNodes(group+1, load, with, from)
	}
	e.addPods(group, -n)
}

// addPods puts n more pods of a group on the node; n may be negative.
func (e *exactSearch) addPods(group, n int) {
	dims := len(e.used)
	for r, need := range e.s.requests[group*dims : (group+1)*dims] {
		e.used[r] += need * int64(n)
	}
	e.value += float64(e.s.value[group] * float64(n))
	e.s.p.binCounts.addPods(e.s.p.groups[e.s.ids[group]].Roles, n)
}

// isUsable reports whether the candidate holds the pods on the node, leaves enough variety, and respects MaxShare
// while that is enforced.
func (e *exactSearch) isUsable(node *ratedNode, segments uint64) bool {
	c := &e.s.p.problem.Candidates[node.candidate]
	e.s.p.usedSteps++
	return fitsInto(e.used, c.Allocatable) && e.s.respectsMaxShare(c, e.value) &&
		(e.s.p.problem.Pools[c.Pool].Enough == nil || e.s.p.hasVariety(node.candidate, e.used, node.zoneCapacityTypes, e.intersectCandidates(segments)))
}

// intersectCandidates returns the candidates that pods of all these segments may use.
func (e *exactSearch) intersectCandidates(segments uint64) (out Set) {
	for left := segments; left != 0; left &= left - 1 {
		out = e.s.p.intersect(out, e.s.segments[bits.TrailingZeros64(left)].candidates)
	}
	return out
}

// listNodes returns the candidates for pods of all these segments, the cheapest first, and of equal price the largest. It
// leaves out candidates that cost more than a candidate of the same pool that is as large.
func (e *exactSearch) listNodes(segments uint64) []ratedNode {
	if list, known := e.lists[segments]; known {
		return list
	}
	zoneCapacityTypes := ^uint64(0)
	for left := segments; left != 0; left &= left - 1 {
		zoneCapacityTypes &= e.s.segments[bits.TrailingZeros64(left)].zoneCapacityTypes
	}
	var all []ratedNode
	in := e.intersectCandidates(segments)
	for _, k := range e.s.candidates {
		c := &e.s.p.problem.Candidates[k]
		if !in.Has(k) || c.zoneCapacityTypes&zoneCapacityTypes == 0 || !e.s.p.CanBuy(k) {
			continue
		}
		node := ratedNode{k, e.s.p.ratedCost(c, zoneCapacityTypes), zoneCapacityTypes}
		if !e.s.hasAlternatives(k, zoneCapacityTypes) {
			node.price *= 1 + e.s.p.problem.Policy.FlexibleCost
		}
		all = append(all, node)
	}
	value := func(n ratedNode) float64 { return e.s.allocatableValue(&e.s.p.problem.Candidates[n.candidate]) }
	slices.SortFunc(all, func(a, b ratedNode) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(value(b), value(a)), cmp.Compare(a.candidate, b.candidate))
	})
	var list []ratedNode
	for _, node := range all {
		if !slices.ContainsFunc(list, func(cheaper ratedNode) bool { return e.isAsGood(cheaper.candidate, node.candidate) }) {
			list = append(list, node)
		}
	}
	e.lists[segments] = list
	return list
}

// isAsGood reports whether the candidate k can replace l on every node. A small node may hold all pods where MaxShare forbids
// that to a large one. In a pool with limits, the variety of nodes that minValues require may depend on the candidate.
func (e *exactSearch) isAsGood(k, l int) bool {
	a, b := &e.s.p.problem.Candidates[k], &e.s.p.problem.Candidates[l]
	e.s.p.usedSteps++
	if small := e.s.p.problem.Policy.SmallNode; b.Allocatable[0] <= small && a.Allocatable[0] > small {
		return false
	}
	if pool := &e.s.p.problem.Pools[a.Pool]; a.Pool != b.Pool || a.Reservation != b.Reservation || a.tier != b.tier || pool.Enough != nil && pool.hasLimits() {
		return false
	}
	return !slices.ContainsFunc(e.needed, func(r int) bool { return a.Allocatable[r] < b.Allocatable[r] })
}
