package packing

import "slices"

// stage is one round of opening bins: some lots, and the columns of one stage.
type stage struct {
	p *Packer
	// ids are the lots, the most valuable pod first; the following slices are parallel to it.
	ids  []int
	left []int
	need []int64
	// wanted is the need of a pod in the priced dimensions.
	wanted []float64
	value  []float64
	group  []int
	// floor is at most the value, and never rises along the list.
	floor []float64
	// groups are lots with the same columns and planes.
	groups []lotGroup
	// priced are the dimensions with a price, and top is the highest price of each dimension in any
	// group: no pod that fits is worth more than the room at these prices.
	priced []int
	top    []float64
	offers []candidate
	hopes  hopes
	// keenest are the groups by dimension, those with the highest price first.
	keenest []int32
	// wants is the total need of each group's pods that are not in a bin, by dimension.
	wants []float64
	// total is the value of all pods, and rest that of pods that are not in a bin.
	total, rest float64
	// spent is the cost of this attempt's bins, and most the maximum.
	spent, most float64
	// before is the cost of the bins of earlier stages, which are part of the plan.
	before float64
	// modest excludes columns that could exceed MaxShare.
	modest bool
	// uniform is the only candidate of a plan with a single column; nil for other plans.
	uniform *candidate
	// short caches the shortlist made with modest = shortModest.
	short       []candidate
	shortModest bool
	columns     []int
	// cheapest are the columns by price, sorted on first use.
	cheapest []priced
	scratch  *scratch
}

type lotGroup struct {
	columns Set
	planes  uint64
	// some is true if the group can use any of the stage's columns, and asks if any of its lots is in
	// the stage.
	some   bool
	asks   bool
	prices []float64
	host   float64
}

// newStage collects the lots that any column of the stage can hold; nil without such lots.
func (p *Packer) newStage(number int, lots []int) *stage {
	s := &stage{p: p, scratch: &p.scratch}
	s.scratch.flags.empty()
	for k := range p.problem.Columns {
		if c := &p.problem.Columns[k]; c.Stage == number && p.problem.Pools[c.Pool].Holds(c.Capacity) && p.supplied(c) {
			s.columns = append(s.columns, k)
		}
	}
	if len(s.columns) == 0 {
		return nil
	}
	s.collect(lots)
	if len(s.ids) == 0 {
		return nil
	}
	s.appraise()
	return s
}

func (p *Packer) supplied(c *Column) bool { return c.Supply == 0 || p.problem.Supplies[c.Supply-1] > 0 }

// collect groups the lots. It skips lots that fit no column, and drops groups without lots.
func (s *stage) collect(lots []int) {
	p := s.p
	for _, id := range lots {
		lot := &p.lots[id]
		if p.left[id] == 0 || len(lot.Beside) > 0 {
			continue
		}
		g := s.groupOf(lot)
		if !s.groups[g].some || !s.placeable(lot, &s.groups[g]) {
			continue
		}
		s.ids, s.group = append(s.ids, id), append(s.group, g)
		s.groups[g].asks = true
	}
	place := make([]int, len(s.groups))
	kept := s.groups[:0]
	for g := range s.groups {
		if place[g] = len(kept); s.groups[g].asks {
			kept = append(kept, s.groups[g])
		}
	}
	s.groups = kept
	for i, g := range s.group {
		s.group[i] = place[g]
	}
}

// groupOf returns the group of a lot, and adds it if it is new. Lots with equal columns share one set,
// so it is enough to compare the start of the sets.
func (s *stage) groupOf(lot *Lot) int {
	for g := range s.groups {
		if s.groups[g].planes == lot.Planes && same(s.groups[g].columns, lot.Columns) {
			return g
		}
	}
	some := slices.ContainsFunc(s.columns, func(k int) bool { return lot.Columns.Has(k) && s.p.problem.Columns[k].planes&lot.Planes != 0 })
	s.groups = append(s.groups, lotGroup{columns: lot.Columns, planes: lot.Planes, some: some})
	return len(s.groups) - 1
}

func same(a, b Set) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func (s *stage) placeable(lot *Lot, g *lotGroup) bool {
	for _, k := range s.columns {
		c := &s.p.problem.Columns[k]
		if g.columns.Has(k) && c.planes&g.planes != 0 && fits(lot.Need, c.Room) {
			return true
		}
	}
	return false
}
