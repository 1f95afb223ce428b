package solver

import (
	"encoding/binary"
	"math/bits"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// sale is how nodes of one choice can be bought. Many nodes of a plan have the same
// choice, so they share one sale, and nobody changes it.
type sale struct {
	// options are the ways to buy, cheapest first.
	options []planning.PricedOffering
	// types are all instance types of the choice.
	types planning.Values
	// variety is nil if the options cover every minValues of the pool. Otherwise it is
	// how many values they have of each label that has minValues.
	variety map[string]int
}

// sell finds the sale of a choice of columns on some planes.
func (r *rounds) sell(p *pool, choice packing.Set, planes uint64) sale {
	r.saleKey = binary.AppendUvarint(binary.AppendUvarint(r.saleKey[:0], uint64(p.index)), planes)
	r.saleKey = choice.AppendKey(r.saleKey)
	if got, ok := r.sales[string(r.saleKey)]; ok {
		return got
	}
	made := sale{
		options: r.options(p, choice, planes), types: planning.In(r.names(p, choice, planes)...),
	}
	if p.base.HasMinValues() && !r.w.varied(p, choice, planes) {
		made.variety = r.w.variety(p, choice, planes)
	}
	r.sales[string(r.saleKey)] = made
	return made
}

// options lists the ways to buy a choice, cheapest first. A launch names sixty types
// at most, so the offers of the others are left out unless some minValues
// may need them.
func (r *rounds) options(p *pool, choice packing.Set, planes uint64) []planning.PricedOffering {
	most := launchTypes
	if p.base.HasMinValues() {
		most = maxTypes
	}
	r.chosen = r.chosen[:0]
	// missing counts the offers, of types that were seen, that are still to come.
	seen, types, missing, count := packing.NewSet(len(r.w.columns)), 0, 0, 0
	for _, s := range r.w.shelf(p) {
		k := int(s.column)
		if s.planes &= planes; s.planes == 0 || !choice.Has(k) {
			continue
		}
		if !seen.Has(k) {
			if types == most {
				continue
			}
			seen.Add(k)
			types++
			missing += r.w.problem.Columns[k].Sold(planes)
		}
		r.chosen = append(r.chosen, s)
		sold := bits.OnesCount64(s.planes)
		count += sold
		if missing -= sold; missing == 0 && types == most {
			break
		}
	}
	return r.w.options(r.chosen, count)
}

// options writes down prices as offers, of which there are so many.
func (w *world) options(prices []shelved, count int) []planning.PricedOffering {
	out := make([]planning.PricedOffering, 0, count)
	for _, s := range prices {
		column := &w.columns[s.column]
		for left := s.planes; left != 0; left &= left - 1 {
			plane := bits.TrailingZeros64(left)
			one := w.planes[plane]
			one.InstanceType, one.PricePerHour = column.typ.Name, s.price
			one.PricedByOverlay = column.overlaid&(1<<plane) != 0
			out = append(out, one)
		}
	}
	return out
}

// names are the types of a choice by name; if there are too many, the cheapest.
func (r *rounds) names(p *pool, choice packing.Set, planes uint64) []string {
	out := make([]string, 0, min(choice.Len(), maxTypes))
	if choice.Len() <= maxTypes {
		choice.Each(func(k int) bool {
			out = append(out, r.w.columns[k].typ.Name)
			return true
		})
		return out
	}
	seen := packing.NewSet(len(r.w.columns))
	for _, s := range r.w.shelf(p) {
		if k := int(s.column); s.planes&planes != 0 && choice.Has(k) && !seen.Has(k) && len(out) < maxTypes {
			seen.Add(k)
			out = append(out, r.w.columns[k].typ.Name)
		}
	}
	return out
}
