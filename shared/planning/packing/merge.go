package packing

import (
	"cmp"
	"slices"
)

// mergeMax is how many of the worst-used bins are tried in pairs.
const mergeMax = 16

// wellSpent is the ratio of value to price from which on a bin is not merged.
const wellSpent = 0.95

// merge merges pairs of bins as long as that saves money. Opening the best node first leaves odd pods
// for the end, on nodes that are too small to be cheap.
func (s *stage) merge(first int) {
	worth := s.worthByLot()
	for {
		a, b, into := s.bestMerge(s.poorest(first, worth))
		if a < 0 {
			return
		}
		s.p.combine(a, b, into)
	}
}

// worthByLot returns the value of one pod of each lot of the stage, by lot number.
func (s *stage) worthByLot() []float64 {
	out := make([]float64, len(s.p.lots))
	for i, id := range s.ids {
		out[id] = s.value[i]
	}
	return out
}

// poor is a bin whose pods are worth clearly less than it costs.
type poor struct {
	bin         int
	rate, waste float64
}

// poorest returns the bins with the lowest ratio of value to price.
func (s *stage) poorest(first int, worth []float64) []poor {
	out := make([]poor, 0, len(s.p.bins)-first)
	for b := first; b < len(s.p.bins); b++ {
		bin, sum := &s.p.bins[b], 0.0
		for _, part := range bin.Parts {
			sum += float64(worth[part.Lot] * float64(part.Count))
		}
		price := s.p.cost(&s.p.problem.Columns[bin.Column], bin.Planes)
		if rate := sum / price; rate < wellSpent {
			out = append(out, poor{b, rate, price - sum})
		}
	}
	slices.SortStableFunc(out, func(x, y poor) int { return cmp.Compare(x.rate, y.rate) })
	return out[:min(len(out), mergeMax)]
}

// bestMerge returns the two bins whose union saves most, and the column for it; a is -1 if no union
// saves anything. No union saves more than its bins waste.
func (s *stage) bestMerge(bins []poor) (a, b, into int) {
	a, saved := -1, 1e-9*s.total
	for i, x := range bins {
		for _, y := range bins[i+1:] {
			if x.waste+y.waste <= saved {
				continue
			}
			column, gain := s.union(x.bin, y.bin, saved)
			if column >= 0 && s.bearable(column, x.bin, y.bin, gain) {
				a, b, into, saved = x.bin, y.bin, column, gain
			}
		}
	}
	return a, b, into
}

// bearable reports whether a union respects MaxShare, or saves more than Premium.
func (s *stage) bearable(column, x, y int, gain float64) bool {
	policy, c := &s.p.problem.Policy, &s.p.problem.Columns[column]
	if policy.MaxShare <= 0 || c.Room[0] <= policy.SmallRoom || gain > policy.Premium*s.total {
		return true
	}
	used := 0.0
	for r, price := range s.top {
		used += float64(price * float64(s.p.bins[x].used[r]+s.p.bins[y].used[r]))
	}
	return used <= policy.MaxShare*(s.before+s.total)
}

// union returns the cheapest column that holds the pods of two bins, and its saving; -1 if no column
// saves more than least.
func (s *stage) union(x, y int, least float64) (column int, gain float64) {
	p := s.p
	a, b := &p.bins[x], &p.bins[y]
	planes := a.Planes & b.Planes
	if planes == 0 || a.ration != b.ration || !p.alike(a.Column, b.Column) {
		return -1, 0
	}
	p.buy(a, -1)
	p.buy(b, -1)
	column, gain = s.cheapestUnion(a, b, planes, least)
	p.buy(a, 1)
	p.buy(b, 1)
	if column >= 0 && (!p.compatible(a, b) || !p.enoughTogether(a, b, column, planes)) {
		return -1, 0
	}
	return column, gain
}

// alike reports whether two columns are of one pool and stage, and not reserved.
func (p *Packer) alike(k, l int) bool {
	a, b := &p.problem.Columns[k], &p.problem.Columns[l]
	return a.Pool == b.Pool && a.Stage == b.Stage && a.Supply+b.Supply == 0
}

func (s *stage) cheapestUnion(a, b *Bin, planes uint64, least float64) (column int, gain float64) {
	p := s.p
	was := p.cost(&p.problem.Columns[a.Column], a.Planes) + p.cost(&p.problem.Columns[b.Column], b.Planes)
	column, gain = -1, least
	need := a.used[0] + b.used[0]
	for _, one := range s.byPrice() {
		if was-one.price <= gain {
			break // All following columns save less.
		}
		if one.room < need {
			continue
		}
		k, c := one.column, &p.problem.Columns[one.column]
		p.steps++
		if !a.Columns.Has(k) || !b.Columns.Has(k) || c.planes&planes == 0 || !p.carries(c, a.used, b.used) || !p.alike(k, a.Column) {
			continue
		}
		if saves := was - p.cost(c, planes); saves > gain && p.problem.Pools[c.Pool].Holds(c.Capacity) {
			column, gain = k, saves
		}
	}
	return column, gain
}

// compatible reports whether the rules allow the pods of two bins in one.
func (p *Packer) compatible(a, b *Bin) bool {
	p.content.clear()
	for _, bin := range []*Bin{a, b} {
		for _, part := range bin.Parts {
			marks := p.lots[part.Lot].Marks
			if p.content.room(marks, part.Count) < part.Count {
				return false
			}
			p.content.add(marks, part.Count)
		}
	}
	return true
}

func (p *Packer) enoughTogether(a, b *Bin, column int, planes uint64) bool {
	if p.problem.Pools[p.problem.Columns[column].Pool].Enough == nil {
		return true
	}
	used := slices.Clone(a.used)
	for r := range used {
		used[r] += b.used[r]
	}
	return p.varied(column, used, planes, a.Columns.And(b.Columns))
}

// combine makes bin x a node of the column with the pods of both bins, and drops y.
func (p *Packer) combine(x, y, column int) {
	a, b := &p.bins[x], &p.bins[y]
	p.buy(a, -1)
	p.buy(b, -1)
	p.charge(a, -1)
	p.charge(b, -1)
	a.Column, a.Planes, a.Columns = column, a.Planes&b.Planes, p.narrowed(a.Columns, b.Columns)
	a.Parts = append(slices.Clone(a.Parts), b.Parts...)
	for r := range a.used {
		a.used[r] += b.used[r]
	}
	p.buy(a, 1)
	p.charge(a, 1)
	if x < len(p.binSites) {
		p.binSites[x].counted = false
	}
	if y < len(p.binSites) {
		p.binSites = slices.Delete(p.binSites, y, y+1)
	}
	p.bins = slices.Delete(p.bins, y, y+1)
}
