package packing

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
)

// shortlist offers the columns that waste least of their price, some of each size. It does not depend
// on the order of lots.
func (s *stage) shortlist() {
	if s.uniform != nil {
		s.offer(*s.uniform)
		return
	}
	if s.short == nil || s.modest != s.shortModest {
		s.short, s.shortModest = s.leastWaste(), s.modest
	}
	for i := range s.short {
		s.offers = append(s.offers, s.short[i])
		s.hopes = append(s.hopes, hope{s.limit(&s.short[i]) / s.short[i].price, i})
	}
	heap.Init(&s.hopes)
}

// rung is the least wasteful columns of one size.
type rung struct {
	size, count int
	best        [perSize]scored
}

// scored is a column and the fraction of its price that it would waste.
type scored struct {
	column int
	waste  float64
}

func (s *stage) leastWaste() []candidate {
	out, rooms := s.scratch.short[:0], s.worthOfRooms()
	for _, planes := range s.planesOf() {
		for _, one := range s.rungs(planes, rooms) {
			for i, best := range one.best[:one.count] {
				if i > 0 && best.waste > wasteMax {
					break
				}
				if c, ok := s.candidate(best.column, planes); ok {
					out = append(out, c)
				}
			}
		}
	}
	s.scratch.short = out
	return out
}

// rungs groups the columns that any group may use in the planes by size. Each size is √2 times as
// expensive as the one before.
func (s *stage) rungs(planes uint64, rooms []float64) []rung {
	all, last, usable := s.scratch.rungs[:0], 0, s.usable(planes)
	for i, k := range s.columns {
		column := &s.p.problem.Columns[k]
		if planes&column.planes == 0 || !usable.Has(k) || !s.moderate(column, rooms[i]) {
			continue
		}
		price := s.p.cost(column, planes)
		size := sizeOf(price)
		if last >= len(all) || all[last].size != size {
			last = slices.IndexFunc(all, func(r rung) bool { return r.size == size })
		}
		if last < 0 {
			last = len(all)
			all = append(all, rung{size: size})
		}
		if one := (scored{k, 1 - rooms[i]/price}); !s.repeats(&all[last], one) {
			all[last].keep(one)
		}
	}
	s.scratch.rungs = all
	slices.SortFunc(all, func(a, b rung) int { return cmp.Compare(a.size, b.size) })
	return all
}

// sizeOf numbers prices in steps of √2: twice the exponent, plus one from √2 on.
func sizeOf(price float64) int {
	const exponent = 52
	bits, root := math.Float64bits(price), math.Float64bits(math.Sqrt2)
	size := int(bits>>exponent) * 2
	if bits<<(64-exponent) >= root<<(64-exponent) {
		size++
	}
	return size
}

// repeats reports whether the rung already has a column that is equally good for every group of pods,
// so that equal columns do not displace columns of another shape.
func (s *stage) repeats(r *rung, one scored) bool {
	return slices.ContainsFunc(r.best[:r.count], func(was scored) bool {
		a, b := &s.p.problem.Columns[was.column], &s.p.problem.Columns[one.column]
		return was.waste == one.waste && a.Pool == b.Pool && a.Supply == b.Supply &&
			slices.Equal(a.Room, b.Room) && slices.Equal(a.Capacity, b.Capacity) &&
			!slices.ContainsFunc(s.groups, func(g lotGroup) bool { return g.columns.Has(was.column) != g.columns.Has(one.column) })
	})
}

// keep adds a column if it is one of the least wasteful so far.
func (r *rung) keep(one scored) {
	at := r.count
	for ; at > 0 && one.waste < r.best[at-1].waste; at-- {
		if at < perSize {
			r.best[at] = r.best[at-1]
		}
	}
	if at < perSize {
		r.best[at], r.count = one, min(r.count+1, perSize)
	}
}

// worthOfRooms returns the value of the whole room of each column of the stage.
func (s *stage) worthOfRooms() []float64 {
	out := make([]float64, len(s.columns))
	for i, k := range s.columns {
		out[i] = s.worthOfRoom(&s.p.problem.Columns[k])
	}
	return out
}

// usable returns the columns that any group may use in the planes.
func (s *stage) usable(planes uint64) Set {
	out := NewSet(len(s.p.problem.Columns))
	for g := range s.groups {
		if s.groups[g].planes&planes == planes {
			out.Join(s.groups[g].columns)
		}
	}
	return out
}

// planesOf returns the sets of planes that lots need, the widest last.
func (s *stage) planesOf() []uint64 {
	var out []uint64
	for _, g := range s.groups {
		if !slices.Contains(out, g.planes) {
			out = append(out, g.planes)
		}
	}
	slices.SortFunc(out, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)), cmp.Compare(a, b))
	})
	return out
}
