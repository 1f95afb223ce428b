package packing

import (
	"container/heap"
	"slices"
)

const (
	// perSize is how many columns of similar price are tried.
	perSize = 3
	// wasteMax excludes columns that waste more than this fraction of their price even when full, if
	// their size has better ones.
	wasteMax = 0.25
	// slackMin is by how much a score may fall since its candidate was last tried before the other
	// candidates are compared again.
	slackMin = 0.002
)

// open opens bins until no lot of the stage fits anywhere.
func (s *stage) open() {
	s.shortlist()
	for s.rest > 0 && !s.beyond() && !s.p.Spent() {
		c, value, picks := s.best()
		lot := -1
		if c == nil {
			if c, lot = s.rescue(); c == nil {
				return
			}
			value, picks = s.fill(c)
		}
		if value, picks = s.trim(c, value, picks); len(picks) > 0 {
			s.commit(c, value, picks)
			continue
		}
		s.drop(c)
		if lot >= 0 {
			s.giveUp(lot)
		}
	}
}

// trim removes pods until enough columns hold the rest.
func (s *stage) trim(c *candidate, value float64, picks []pick) (float64, []pick) {
	column := &s.p.problem.Columns[c.column]
	if s.p.scarce {
		value, picks = s.address(value, picks, s.p.holdsPods(c.column, c.planes))
	}
	ask := s.p.problem.Pools[column.Pool].Enough
	if ask == nil {
		return value, picks
	}
	bin := Bin{Column: c.column, Planes: c.planes}
	for len(picks) > 0 {
		used := make([]int64, s.p.problem.Dims)
		bin.Columns, value = nil, 0
		for _, pick := range picks {
			bin.Columns = s.p.narrowed(bin.Columns, s.groups[s.group[pick.lot]].columns)
			value += float64(s.value[pick.lot] * float64(pick.count))
			for r := range used {
				used[r] += s.need[pick.lot*len(used)+r] * int64(pick.count)
			}
		}
		if ask(s.p.choice(&bin, used, bin.Planes, bin.Columns), bin.Planes) {
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

// address removes pods for which the best zone has no addresses.
func (s *stage) address(value float64, picks []pick, room int) (float64, []pick) {
	count := 0
	for _, pick := range picks {
		count += pick.count
	}
	for over := count - room; over > 0 && len(picks) > 0; {
		last := &picks[len(picks)-1]
		n := min(over, last.count)
		last.count -= n
		over -= n
		value -= float64(s.value[last.lot] * float64(n))
		if last.count == 0 {
			picks = picks[:len(picks)-1]
		}
	}
	return value, picks
}

// giveUp leaves a lot to later stages.
func (s *stage) giveUp(i int) {
	s.rest -= float64(s.value[i] * float64(s.left[i]))
	s.want(i, -s.left[i])
	s.left[i] = 0
}

// worthOfRoom returns the value of a column's whole room at the highest prices.
func (s *stage) worthOfRoom(c *Column) float64 {
	sum := 0.0
	for r, price := range s.top {
		sum += float64(price * float64(max(0, c.Room[r])))
	}
	return sum
}

// moderate reports whether a full node of the column respects MaxShare, while that is required.
func (s *stage) moderate(c *Column, worth float64) bool {
	policy := &s.p.problem.Policy
	return !s.modest || worth <= policy.MaxShare*(s.before+s.total) || c.Room[0] <= policy.SmallRoom
}

// score returns the value of a node for its price, reduced for nodes with a large share of the plan.
func (s *stage) score(c *candidate, value float64) float64 {
	if c.factor == 0 {
		c.factor = 1
		if !s.flexible(c.column, c.planes) {
			c.factor += s.p.problem.Policy.FlexibleCost
		}
	}
	return value / (c.price * c.factor) * (1 - s.p.problem.Policy.ShareCost*value/s.total)
}

// best returns the candidate with the highest score and its picks. It tries candidates in the order of
// hopes, the upper limits of their scores: the last score, or the bound from limit if the candidate is
// untried. Scores only fall as pods are placed, so it stops when the best known score is current. A
// candidate that takes no pod has the hope 0. The picks are valid until the next fill.
func (s *stage) best() (c *candidate, value float64, picks []pick) {
	for len(s.hopes) > 0 && s.hopes[0].score > 0 {
		at := s.hopes[0].offer
		top := &s.offers[at]
		if !top.stale {
			value, picks = s.fill(top)
			return top, value, picks
		}
		if !s.p.Buyable(top.column) {
			s.hope(0)
			continue
		}
		if most := s.limit(top) / top.price; most < s.hopes[0].score {
			s.hope(most)
			continue
		}
		value, picks = s.fill(top)
		was, is := s.hopes[0].score, s.score(top, value)
		top.stale = false
		s.hope(is)
		if value > 0 && (is >= was*(1-slackMin) || s.hopes[0].offer == at) {
			return top, value, picks
		}
	}
	return nil, 0, nil
}

// hope sets the hope of the top candidate.
func (s *stage) hope(score float64) {
	s.hopes[0].score = score
	heap.Fix(&s.hopes, 0)
}

// offer adds a candidate that is not on the shortlist.
func (s *stage) offer(c candidate) *candidate {
	s.offers = append(s.offers, c)
	heap.Push(&s.hopes, hope{s.limit(&c) / c.price, len(s.offers) - 1})
	return &s.offers[len(s.offers)-1]
}

// drop sets the hope of a candidate to 0.
func (s *stage) drop(c *candidate) {
	for i := range s.hopes {
		if &s.offers[s.hopes[i].offer] == c {
			s.hopes[i].score = 0
			heap.Fix(&s.hopes, i)
			return
		}
	}
}

// commit turns the picks into a bin.
func (s *stage) commit(c *candidate, value float64, picks []pick) {
	dims := s.p.problem.Dims
	bin := Bin{Column: c.column, Planes: c.planes, used: make([]int64, dims), Parts: make([]Part, len(picks))}
	group := -1
	for j, pick := range picks {
		bin.Parts[j] = Part{s.ids[pick.lot], pick.count}
		s.left[pick.lot] -= pick.count
		s.want(pick.lot, -pick.count)
		s.p.left[s.ids[pick.lot]] -= pick.count
		s.p.count(&s.p.lots[s.ids[pick.lot]], pick.count)
		for r := range dims {
			bin.used[r] += s.need[pick.lot*dims+r] * int64(pick.count)
		}
		if g := s.group[pick.lot]; g != group {
			bin.Columns, group = s.p.narrowed(bin.Columns, s.groups[g].columns), g
		}
	}
	s.p.allot(&bin)
	s.p.buy(&bin, 1)
	s.p.charge(&bin, 1)
	s.p.bins = append(s.p.bins, bin)
	s.spent += c.price
	s.rest -= value
	if !slices.ContainsFunc(s.left, func(n int) bool { return n > 0 }) {
		s.rest = 0
	}
	for i := range s.offers {
		s.offers[i].stale = true
	}
}

// narrowed intersects two shared sets, and allocates only if they differ.
func (p *Packer) narrowed(was, with Set) Set {
	if was == nil || same(was, with) {
		return with
	}
	return was.And(with)
}

// buy subtracts a bin from its pool's quota; sign -1 adds it back.
func (p *Packer) buy(b *Bin, sign int64) {
	c := &p.problem.Columns[b.Column]
	p.problem.Pools[c.Pool].take(c.Capacity, sign)
	if c.Supply > 0 {
		p.problem.Supplies[c.Supply-1] -= int(sign)
	}
}

// rescue returns a candidate for the first lot that no candidate of the shortlist can hold.
func (s *stage) rescue() (found *candidate, lot int) {
	buyable := slices.DeleteFunc(slices.Clone(s.columns), func(k int) bool { return !s.p.Buyable(k) })
	for i, id := range s.ids {
		if s.left[i] == 0 {
			continue
		}
		g, best := &s.groups[s.group[i]], candidate{column: -1}
		for _, k := range buyable {
			column := &s.p.problem.Columns[k]
			if !g.columns.Has(k) || column.planes&g.planes == 0 || !fits(s.p.lots[id].Need, column.Room) {
				continue
			}
			if price := s.p.cost(column, g.planes); best.column < 0 || price < best.price {
				best.column, best.price = k, price
			}
		}
		if best.column >= 0 {
			if c, ok := s.candidate(best.column, g.planes); ok {
				return s.offer(c), i
			}
		}
		s.giveUp(i)
	}
	s.rest = 0
	return nil, -1
}
