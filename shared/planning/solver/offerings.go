package solver

import (
	"encoding/binary"
	"math/bits"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// nodeOfferings are the offerings of the nodes of one choice. Nodes with the same choice share one
// value; it must not be changed.
type nodeOfferings struct {
	// offerings are sorted by price, the cheapest first.
	offerings []planning.PricedOffering
	// types are all instance types of the choice.
	types planning.Values
	// minValueCounts is nil if the offerings cover every minValues of the pool. Otherwise it has the
	// number of different values for each label with minValues.
	minValueCounts map[string]int
}

// findOfferings returns the offerings of a choice of candidates in some zoneCapacityTypes, cached.
func (r *rounds) findOfferings(p *pool, choice packing.Set, zoneCapacityTypes uint64) nodeOfferings {
	r.offeringsKey = binary.AppendUvarint(binary.AppendUvarint(r.offeringsKey[:0], uint64(p.index)), zoneCapacityTypes)
	r.offeringsKey = choice.AppendKey(r.offeringsKey)
	if got, ok := r.offerings[string(r.offeringsKey)]; ok {
		return got
	}
	made := nodeOfferings{
		offerings: r.listOfferings(p, choice, zoneCapacityTypes), types: planning.In(r.listTypeNames(p, choice, zoneCapacityTypes)...),
	}
	if p.requirements.HasMinValues() && !r.state.coversMinValues(p, choice, zoneCapacityTypes) {
		made.minValueCounts = r.state.countMinValues(p, choice, zoneCapacityTypes)
	}
	r.offerings[string(r.offeringsKey)] = made
	return made
}

// listOfferings returns the offerings of a choice, the cheapest first. A launch lists at most
// maxLaunchTypes types, so the offerings of other types are left out, unless minValues may need them.
func (r *rounds) listOfferings(p *pool, choice packing.Set, zoneCapacityTypes uint64) []planning.PricedOffering {
	most := maxLaunchTypes
	if p.requirements.HasMinValues() {
		most = maxClaimTypes
	}
	r.chosenPrices = r.chosenPrices[:0]
	// missing counts the offerings, of types already seen, that are still to come.
	seen, types, missing, count := packing.NewSet(len(r.state.candidates)), 0, 0, 0
	for _, s := range r.state.priceTiers(p) {
		k := int(s.candidate)
		if s.zoneCapacityTypes &= zoneCapacityTypes; s.zoneCapacityTypes == 0 || !choice.Has(k) {
			continue
		}
		if !seen.Has(k) {
			if types == most {
				continue
			}
			seen.Add(k)
			types++
			missing += r.state.problem.Candidates[k].CountOfferings(zoneCapacityTypes)
		}
		r.chosenPrices = append(r.chosenPrices, s)
		sold := bits.OnesCount64(s.zoneCapacityTypes)
		count += sold
		if missing -= sold; missing == 0 && types == most {
			break
		}
	}
	return r.state.newOfferings(r.chosenPrices, count)
}

// newOfferings converts price tiers to offerings; count is their number.
func (w *state) newOfferings(prices []priceTier, count int) []planning.PricedOffering {
	out := make([]planning.PricedOffering, 0, count)
	for _, s := range prices {
		candidate := &w.candidates[s.candidate]
		for left := s.zoneCapacityTypes; left != 0; left &= left - 1 {
			zoneCapacityType := bits.TrailingZeros64(left)
			one := w.zoneCapacityTypes[zoneCapacityType]
			one.InstanceType, one.PricePerHour = candidate.instanceType.Name, s.price
			one.PricedByOverlay = candidate.overlaidOfferings&(1<<zoneCapacityType) != 0
			out = append(out, one)
		}
	}
	return out
}

// listTypeNames returns the types of a choice by name: the cheapest maxClaimTypes if there are more.
func (r *rounds) listTypeNames(p *pool, choice packing.Set, zoneCapacityTypes uint64) []string {
	out := make([]string, 0, min(choice.Len(), maxClaimTypes))
	if choice.Len() <= maxClaimTypes {
		choice.Each(func(k int) bool {
			out = append(out, r.state.candidates[k].instanceType.Name)
			return true
		})
		return out
	}
	seen := packing.NewSet(len(r.state.candidates))
	for _, s := range r.state.priceTiers(p) {
		if k := int(s.candidate); s.zoneCapacityTypes&zoneCapacityTypes != 0 && choice.Has(k) && !seen.Has(k) && len(out) < maxClaimTypes {
			seen.Add(k)
			out = append(out, r.state.candidates[k].instanceType.Name)
		}
	}
	return out
}
