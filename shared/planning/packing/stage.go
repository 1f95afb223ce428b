package packing

import "slices"

// stage is one round of opening bins: some lots, and the columns of one stage.
type stage struct {
	p *Packer
	// ids are the lots, the most valuable pod first; the slices below are parallel.
	ids  []int
	left []int
	need []int64
	// wanted is what a pod needs of the priced dimensions.
	wanted []float64
	value  []float64
	group  []int
	// floor is at most the value, and falls along the list.
	floor []float64
	// groups are lots with the same columns and planes.
	groups []lotGroup
	// priced are the dimensions that have a price, and top the highest price of each
	// among the groups: no pod that fits is worth more than the room at these.
	priced []int
	top    []float64
	offers []candidate
	hopes  hopes
	// keenest are the groups by dimension, those first to whom it is worth most.
	keenest []int32
	// wants is what the pods of each group that are not in a bin need, by dimension.
	wants []float64
	// total is what all pods are worth; rest, those that are not in a bin.
	total, rest float64
	// spent is what the bins of this attempt cost, and most what they may.
	spent, most float64
	// before is what the bins of earlier stages cost: the plan is theirs and this.
	before float64
	// modest leaves out columns that could carry too much of the plan.
	modest bool
	// uniform is the one candidate of a plan whose nodes are all alike; nil for others.
	uniform *candidate
	// short is the shortlist as it was made for shortModest.
	short       []candidate
	shortModest bool
	columns     []int
	// cheapest are the same, by price; they are sorted when they are first asked for.
	cheapest []priced
	scratch  *scratch
}

type lotGroup struct {
	columns Set
	planes  uint64
	// some is whether any of the stage's columns is for the group, and asks whether
	// any of its lots is the stage's.
	some   bool
	asks   bool
	prices []float64
	host   float64
}

// newStage gathers the lots that some column of the stage can take.
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

// collect finds the lots' groups, and drops lots that fit no column, and groups
// without lots.
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

// groupOf finds or makes the group of a lot. Lots of equal columns share one set,
// so that it is enough to compare where the sets begin.
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
