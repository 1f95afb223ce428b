package solver

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// priceTier is a price of a candidate and the zoneCapacityTypes that have it. On-demand mostly costs
// the same in every zone.
type priceTier struct {
	price             float64
	zoneCapacityTypes uint64
	candidate         int32
}

// priceTiers returns the prices of a pool's candidates, the lowest first.
func (w *state) priceTiers(p *pool) []priceTier {
	if p.prices != nil {
		return p.prices
	}
	out := make([]priceTier, 0, 4*len(p.allowedTypes))
	for k := p.firstCandidate; k < p.endCandidate; k++ {
		out = addPriceTiers(out, int32(k), w.problem.Candidates[k].Prices)
	}
	slices.SortFunc(out, func(x, y priceTier) int {
		switch { // Prices are never NaN, and most differ.
		case x.price < y.price:
			return -1
		case x.price > y.price:
			return 1
		}
		return cmp.Compare(x.candidate, y.candidate)
	})
	p.prices = out
	return out
}

// addPriceTiers appends a candidate's prices.
func addPriceTiers(to []priceTier, candidate int32, offers []packing.ZonePrice) []priceTier {
	from := len(to)
	for _, o := range offers {
		at := slices.IndexFunc(to[from:], func(s priceTier) bool { return s.price == o.Price })
		if at < 0 {
			at = len(to) - from
			to = append(to, priceTier{price: o.Price, candidate: candidate})
		}
		to[from+at].zoneCapacityTypes |= 1 << o.ZoneCapacityType
	}
	return to
}

// coversMinValues reports whether a launch of the candidates covers every minValues of a pool, with
// spot or without.
func (w *state) coversMinValues(p *pool, candidates packing.Set, zoneCapacityTypes uint64) bool {
	return w.launchCovers(p, candidates, zoneCapacityTypes) || w.hadUnplaced && w.launchCovers(p, candidates, w.withoutSpot(zoneCapacityTypes))
}

// launchOfferings returns the zoneCapacityTypes to launch a node in. It drops spot if the launch
// covers every minValues of the pool only without spot.
func (w *state) launchOfferings(p *pool, candidates packing.Set, zoneCapacityTypes uint64) uint64 {
	if rest := w.withoutSpot(zoneCapacityTypes); w.hadUnplaced && rest != zoneCapacityTypes && p.requirements.HasMinValues() && !w.launchCovers(p, candidates, zoneCapacityTypes) && w.launchCovers(p, candidates, rest) {
		return rest
	}
	return zoneCapacityTypes
}

// withoutSpot returns the zoneCapacityTypes that are not spot.
func (w *state) withoutSpot(zoneCapacityTypes uint64) uint64 {
	for i := range w.zoneCapacityTypes {
		if w.zoneCapacityTypes[i].CapacityType == karpenter.CapacityTypeSpot {
			zoneCapacityTypes &^= 1 << i
		}
	}
	return zoneCapacityTypes
}

// launchCovers reports whether the offerings that one launch tries cover every minValues of a pool. A
// launch tries the cheapest types, and only spot if there is spot.
func (w *state) launchCovers(p *pool, candidates packing.Set, zoneCapacityTypes uint64) bool {
	counts := w.countMinValues(p, candidates, zoneCapacityTypes)
	for key, count := range counts {
		if count < p.requirements[key].MinValues() {
			return false
		}
	}
	return true
}

// countMinValues returns, for each label with minValues, the number of different values that one
// launch of the candidates tries.
func (w *state) countMinValues(p *pool, candidates packing.Set, zoneCapacityTypes uint64) map[string]int {
	tried, out := w.launchTiers(p, candidates, zoneCapacityTypes), map[string]int{}
	for key, values := range p.requirements {
		if values.MinValues() == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, s := range tried {
			if value, ok := w.candidates[s.candidate].labels[key]; ok {
				if value != "" {
					seen[value] = true
				}
				continue
			}
			for left := s.zoneCapacityTypes; left != 0; left &= left - 1 {
				if value := w.zoneCapacityTypes[bits.TrailingZeros64(left)].Label(key); value != "" {
					seen[value] = true
				}
			}
		}
		out[key] = len(seen)
	}
	return out
}

// filterTiers returns the prices of the candidates' offerings in some zoneCapacityTypes.
func (w *state) filterTiers(p *pool, candidates packing.Set, zoneCapacityTypes uint64) (out []priceTier) {
	for _, s := range w.priceTiers(p) {
		if s.zoneCapacityTypes &= zoneCapacityTypes; s.zoneCapacityTypes != 0 && candidates.Has(int(s.candidate)) {
			out = append(out, s)
		}
	}
	return out
}

// launchTiers returns the prices of the offerings that one launch tries.
func (w *state) launchTiers(p *pool, candidates packing.Set, zoneCapacityTypes uint64) []priceTier {
	all := w.filterTiers(p, candidates, zoneCapacityTypes&^w.withoutSpot(zoneCapacityTypes))
	if len(all) == 0 {
		all = w.filterTiers(p, candidates, zoneCapacityTypes)
	}
	types := map[int32]bool{}
	return slices.DeleteFunc(all, func(s priceTier) bool {
		if !types[s.candidate] && len(types) == maxLaunchTypes {
			return true
		}
		types[s.candidate] = true
		return false
	})
}
