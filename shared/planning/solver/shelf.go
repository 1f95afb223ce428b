package solver

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// shelved is a price of a column, and the planes that have it: what is bought on
// demand mostly costs the same in every zone.
type shelved struct {
	price  float64
	planes uint64
	column int32
}

// shelf lists the prices of a pool's columns, the lowest first.
func (w *world) shelf(p *pool) []shelved {
	if p.shelf != nil {
		return p.shelf
	}
	out := make([]shelved, 0, 4*len(p.allowed))
	for k := p.from; k < p.to; k++ {
		out = shelve(out, int32(k), w.problem.Columns[k].Offers)
	}
	slices.SortFunc(out, func(x, y shelved) int {
		switch { // Prices are numbers (sane), and most differ.
		case x.price < y.price:
			return -1
		case x.price > y.price:
			return 1
		}
		return cmp.Compare(x.column, y.column)
	})
	p.shelf = out
	return out
}

// shelve adds a column's prices.
func shelve(to []shelved, column int32, offers []packing.Offer) []shelved {
	from := len(to)
	for _, o := range offers {
		at := slices.IndexFunc(to[from:], func(s shelved) bool { return s.price == o.Price })
		if at < 0 {
			at = len(to) - from
			to = append(to, shelved{price: o.Price, column: column})
		}
		to[from+at].planes |= 1 << o.Plane
	}
	return to
}

// varied reports whether a launch of some columns covers every minValues of a pool,
// with spot or without.
func (w *world) varied(p *pool, columns packing.Set, planes uint64) bool {
	return w.covers(p, columns, planes) || w.pressed && w.covers(p, columns, w.steady(planes))
}

// launched are the planes on which a node is bought: spot is left out if only what
// remains covers every minValues of the pool.
func (w *world) launched(p *pool, columns packing.Set, planes uint64) uint64 {
	if rest := w.steady(planes); w.pressed && rest != planes && p.base.HasMinValues() && !w.covers(p, columns, planes) && w.covers(p, columns, rest) {
		return rest
	}
	return planes
}

// steady are the planes that are not spot.
func (w *world) steady(planes uint64) uint64 {
	for i := range w.planes {
		if w.planes[i].CapacityType == karpenter.CapacityTypeSpot {
			planes &^= 1 << i
		}
	}
	return planes
}

// covers reports whether what one launch would try of some columns covers every
// minValues of a pool: the cheapest types, and spot alone where there is spot.
func (w *world) covers(p *pool, columns packing.Set, planes uint64) bool {
	counts := w.variety(p, columns, planes)
	for key, count := range counts {
		if count < p.base[key].MinValues() {
			return false
		}
	}
	return true
}

// variety counts, for each label of which a pool demands minValues, the different
// values that one launch of some columns would try.
func (w *world) variety(p *pool, columns packing.Set, planes uint64) map[string]int {
	tried, out := w.tried(p, columns, planes), map[string]int{}
	for key, values := range p.base {
		if values.MinValues() == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, s := range tried {
			if value, ok := w.columns[s.column].labels[key]; ok {
				if value != "" {
					seen[value] = true
				}
				continue
			}
			for left := s.planes; left != 0; left &= left - 1 {
				if value := w.planes[bits.TrailingZeros64(left)].Label(key); value != "" {
					seen[value] = true
				}
			}
		}
		out[key] = len(seen)
	}
	return out
}

// tried are the prices, on some planes, of the types that one launch names.
func (w *world) tried(p *pool, columns packing.Set, planes uint64) []shelved {
	var all []shelved
	spot, sold := planes&^w.steady(planes), uint64(0)
	for _, s := range w.shelf(p) {
		if s.planes &= planes; s.planes != 0 && columns.Has(int(s.column)) {
			all = append(all, s)
			sold |= s.planes
		}
	}
	if sold&spot != 0 {
		all = slices.DeleteFunc(all, func(s shelved) bool { return s.planes&spot == 0 })
		for i := range all {
			all[i].planes &= spot
		}
	}
	types := map[int32]bool{}
	return slices.DeleteFunc(all, func(s shelved) bool {
		if !types[s.column] && len(types) == launchTypes {
			return true
		}
		types[s.column] = true
		return false
	})
}
