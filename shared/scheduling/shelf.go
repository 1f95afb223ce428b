package scheduling

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling/packing"
)

// shelved is one offer of a column.
type shelved struct {
	price         float64
	column, plane int32
}

// shelf lists the offers of a pool on some planes, the cheapest first.
func (w *world) shelf(p *pool, planes uint64) []shelved {
	if got, ok := p.shelves[planes]; ok {
		return got
	}
	if p.shelf == nil {
		p.shelf, p.shelves = w.shelve(p), map[uint64][]shelved{}
	}
	out := make([]shelved, 0, len(p.shelf))
	for i := range p.shelf {
		if planes&(1<<p.shelf[i].plane) != 0 {
			out = append(out, p.shelf[i])
		}
	}
	p.shelves[planes] = out
	return out
}

// shelve sorts all offers of a pool by price.
func (w *world) shelve(p *pool) []shelved {
	count := 0
	for k := range w.columns {
		if w.columns[k].pool == p {
			count += len(w.problem.Columns[k].Offers)
		}
	}
	out := make([]shelved, 0, count)
	for k := range w.columns {
		if w.columns[k].pool != p {
			continue
		}
		for _, o := range w.problem.Columns[k].Offers {
			out = append(out, shelved{o.Price, int32(k), int32(o.Plane)})
		}
	}
	slices.SortFunc(out, func(x, y shelved) int {
		switch { // Prices are numbers (sane), and most differ.
		case x.price < y.price:
			return -1
		case x.price > y.price:
			return 1
		}
		return cmp.Or(cmp.Compare(x.column, y.column), cmp.Compare(x.plane, y.plane))
	})
	return out
}

// varied reports whether a launch of some columns covers every minValues of a pool
// (B005), with spot or without.
func (w *world) varied(p *pool, columns packing.Set, planes uint64) bool {
	return w.covers(p, columns, planes) || w.pressed && w.covers(p, columns, w.steady(planes))
}

// launched are the planes on which a node is bought: spot is left out if only what
// remains covers every minValues of the pool.
func (w *world) launched(p *pool, columns packing.Set, planes uint64) uint64 {
	if rest := w.steady(planes); w.pressed && rest != planes && p.base.Demanding() && !w.covers(p, columns, planes) && w.covers(p, columns, rest) {
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
	tried := w.tried(p, columns, planes)
	for key, values := range p.base {
		if values.MinValues() == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, s := range tried {
			value, ok := w.columns[s.column].labels[key]
			if !ok {
				value = w.planes[s.plane].Label(key)
			}
			if value != "" {
				seen[value] = true
			}
		}
		if len(seen) < values.MinValues() {
			return false
		}
	}
	return true
}

// tried are the offers of the types that one launch names.
func (w *world) tried(p *pool, columns packing.Set, planes uint64) []shelved {
	var all []shelved
	spot := false
	for _, s := range w.shelf(p, planes) {
		if columns.Has(int(s.column)) {
			all = append(all, s)
			spot = spot || w.planes[s.plane].CapacityType == karpenter.CapacityTypeSpot
		}
	}
	if spot {
		all = slices.DeleteFunc(all, func(s shelved) bool { return w.planes[s.plane].CapacityType != karpenter.CapacityTypeSpot })
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
