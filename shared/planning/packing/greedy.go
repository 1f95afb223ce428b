package packing

import (
	"container/heap"
	"slices"
)

const (
	// maxPerSize is how many candidates of similar price are on the shortlist.
	maxPerSize = 3
	// maxWaste excludes candidates that waste more than this fraction of their price even when full, if
	// their size has better ones.
	maxWaste = 0.25
	// minScoreDrop is by how much a score may fall since its option was last tried before the other
	// options are compared again.
	minScoreDrop = 0.002
)

// openBins opens bins until no pod group of the stage fits anywhere.
func (s *stage) openBins() {
	s.offerShortlist()
	for s.unplacedValue > 0 && !s.isTooExpensive() && !s.p.IsBudgetUsed() {
		o, value, picks := s.bestOption()
		group := -1
		if o == nil {
			if o, group = s.optionForRest(); o == nil {
				return
			}
			value, picks = s.fillOption(o)
		}
		if value, picks = s.trimPicks(o, value, picks); len(picks) > 0 {
			s.openBin(o, value, picks)
			continue
		}
		s.dropOption(o)
		if group >= 0 {
			s.giveUpGroup(group)
		}
	}
}

// trimPicks removes pods until enough candidates hold the rest.
func (s *stage) trimPicks(o *option, value float64, picks []pick) (float64, []pick) {
	candidate := &s.p.problem.Candidates[o.candidate]
	if s.p.zoneQuotasScarce {
		value, picks = s.trimToAddresses(value, picks, s.p.podsByAddresses(o.candidate, o.zoneCapacityTypes))
	}
	enough := s.p.problem.Pools[candidate.Pool].Enough
	if enough == nil {
		return value, picks
	}
	bin := Bin{Candidate: o.candidate, ZoneCapacityTypes: o.zoneCapacityTypes}
	for len(picks) > 0 {
		used := make([]int64, s.p.problem.Dims)
		bin.Candidates, value = nil, 0
		for _, pick := range picks {
			bin.Candidates = s.p.intersect(bin.Candidates, s.segments[s.segmentOf[pick.group]].candidates)
			value += float64(s.value[pick.group] * float64(pick.count))
			for r := range used {
				used[r] += s.requests[pick.group*len(used)+r] * int64(pick.count)
			}
		}
		if enough(s.p.findBuyable(&bin, used, bin.ZoneCapacityTypes, bin.Candidates), bin.ZoneCapacityTypes) {
			return value, picks
		}
		if last := &picks[len(picks)-1]; last.count > 1 {
			last.count /= 2
		} else {
			picks = picks[:len(picks)-1]
		}
	}
	return 0, nil
}

// trimToAddresses removes pods for which the best zone has no addresses.
func (s *stage) trimToAddresses(value float64, picks []pick, addresses int) (float64, []pick) {
	count := 0
	for _, pick := range picks {
		count += pick.count
	}
	for over := count - addresses; over > 0 && len(picks) > 0; {
		last := &picks[len(picks)-1]
		n := min(over, last.count)
		last.count -= n
		over -= n
		value -= float64(s.value[last.group] * float64(n))
		if last.count == 0 {
			picks = picks[:len(picks)-1]
		}
	}
	return value, picks
}

// giveUpGroup leaves a pod group to later stages.
func (s *stage) giveUpGroup(i int) {
	s.unplacedValue -= float64(s.value[i] * float64(s.unplaced[i]))
	s.addUnplaced(i, -s.unplaced[i])
	s.unplaced[i] = 0
}

// allocatableValue returns the value of a candidate's whole capacity at the highest prices.
func (s *stage) allocatableValue(c *CandidateType) float64 {
	sum := 0.0
	for r, price := range s.highestPrices {
		sum += float64(price * float64(max(0, c.Allocatable[r])))
	}
	return sum
}

// respectsMaxShare reports whether a full node of the candidate, of the given value, respects
// MaxShare while that is enforced.
func (s *stage) respectsMaxShare(c *CandidateType, value float64) bool {
	policy := &s.p.problem.Policy
	return !s.enforceMaxShare || value <= policy.MaxShare*(s.earlierCost+s.total) || c.Allocatable[0] <= policy.SmallNode
}

// rateOption returns the score of an option: the value of a node for its price, reduced for nodes
// with a large share of the plan.
func (s *stage) rateOption(o *option, value float64) float64 {
	if o.factor == 0 {
		o.factor = 1
		if !s.hasAlternatives(o.candidate, o.zoneCapacityTypes) {
			o.factor += s.p.problem.Policy.FlexibleCost
		}
	}
	return value / (o.price * o.factor) * (1 - s.p.problem.Policy.ShareCost*value/s.total)
}

// bestOption returns the option with the highest score and its picks. It tries options in the order
// of upper bounds on their scores: the last score, or the result of boundValue if the option is
// untried. Scores only fall as pods are placed, so it stops when the best known score is current.
// An option that takes no pod has the bound 0. The picks are valid until the next fill.
func (s *stage) bestOption() (o *option, value float64, picks []pick) {
	for len(s.bounds) > 0 && s.bounds[0].bound > 0 {
		at := s.bounds[0].option
		top := &s.options[at]
		if !top.stale {
			value, picks = s.fillOption(top)
			return top, value, picks
		}
		if !s.p.CanBuy(top.candidate) {
			s.setTopBound(0)
			continue
		}
		if most := s.boundValue(top) / top.price; most < s.bounds[0].bound {
			s.setTopBound(most)
			continue
		}
		value, picks = s.fillOption(top)
		was, is := s.bounds[0].bound, s.rateOption(top, value)
		top.stale = false
		s.setTopBound(is)
		if value > 0 && (is >= was*(1-minScoreDrop) || s.bounds[0].option == at) {
			return top, value, picks
		}
	}
	return nil, 0, nil
}

// setTopBound sets the bound of the top option.
func (s *stage) setTopBound(bound float64) {
	s.bounds[0].bound = bound
	heap.Fix(&s.bounds, 0)
}

// addOption adds an option that is not on the shortlist.
func (s *stage) addOption(o option) *option {
	s.options = append(s.options, o)
	heap.Push(&s.bounds, optionBound{s.boundValue(&o) / o.price, len(s.options) - 1})
	return &s.options[len(s.options)-1]
}

// dropOption sets the bound of an option to 0.
func (s *stage) dropOption(o *option) {
	for i := range s.bounds {
		if &s.options[s.bounds[i].option] == o {
			s.bounds[i].bound = 0
			heap.Fix(&s.bounds, i)
			return
		}
	}
}

// openBin turns the picks into a bin.
func (s *stage) openBin(o *option, value float64, picks []pick) {
	dims := s.p.problem.Dims
	bin := Bin{Candidate: o.candidate, ZoneCapacityTypes: o.zoneCapacityTypes, used: make([]int64, dims), Pods: make([]GroupCount, len(picks))}
	segment := -1
	for j, pick := range picks {
		bin.Pods[j] = GroupCount{s.ids[pick.group], pick.count}
		s.unplaced[pick.group] -= pick.count
		s.addUnplaced(pick.group, -pick.count)
		s.p.unplaced[s.ids[pick.group]] -= pick.count
		s.p.countMembers(&s.p.groups[s.ids[pick.group]], pick.count)
		for r := range dims {
			bin.used[r] += s.requests[pick.group*dims+r] * int64(pick.count)
		}
		if g := s.segmentOf[pick.group]; g != segment {
			bin.Candidates, segment = s.p.intersect(bin.Candidates, s.segments[g].candidates), g
		}
	}
	s.p.assignZone(&bin)
	s.p.chargePool(&bin, 1)
	s.p.chargeZoneQuota(&bin, 1)
	s.p.bins = append(s.p.bins, bin)
	s.cost += o.price
	s.unplacedValue -= value
	if s.unplacedPods == 0 {
		s.unplacedValue = 0
	}
	for i := range s.options {
		s.options[i].stale = true
	}
}

// intersect intersects two shared sets, and allocates only if they differ.
func (p *Packer) intersect(was, with Set) Set {
	if was == nil || isSameSet(was, with) {
		return with
	}
	return was.Intersect(with)
}

// chargePool subtracts a bin from its pool's quota; sign -1 adds it back.
func (p *Packer) chargePool(b *Bin, sign int64) {
	c := &p.problem.Candidates[b.Candidate]
	p.problem.Pools[c.Pool].subtract(c.Capacity, sign)
	if c.Reservation > 0 {
		p.problem.Reservations[c.Reservation-1] -= int(sign)
	}
}

// optionForRest adds an option for the first pod group that no option of the shortlist can hold.
func (s *stage) optionForRest() (o *option, group int) {
	buyable := slices.DeleteFunc(slices.Clone(s.candidates), func(k int) bool { return !s.p.CanBuy(k) })
	for i, id := range s.ids {
		if s.unplaced[i] == 0 {
			continue
		}
		g, best := &s.segments[s.segmentOf[i]], option{candidate: -1}
		for _, k := range buyable {
			candidate := &s.p.problem.Candidates[k]
			if !g.candidates.Has(k) || candidate.zoneCapacityTypes&g.zoneCapacityTypes == 0 || !fitsInto(s.p.groups[id].Requests, candidate.Allocatable) {
				continue
			}
			if price := s.p.ratedCost(candidate, g.zoneCapacityTypes); best.candidate < 0 || price < best.price {
				best.candidate, best.price = k, price
			}
		}
		if best.candidate >= 0 {
			if o, ok := s.newOption(best.candidate, g.zoneCapacityTypes); ok {
				return s.addOption(o), i
			}
		}
		s.giveUpGroup(i)
	}
	s.unplacedValue = 0
	return nil, -1
}
