package packing

import (
	"math"
	"slices"
)

// party is a group of pods that may use the same columns in the same planes, with its shadow prices.
type party struct {
	columns Set
	planes  uint64
	// demand and prices are by dimension; the last entry is for nodes.
	demand, prices []float64
	bound          float64
}

// Bound returns a lower bound on the cost of the pods in the bins, in US dollars per hour, for any
// packing. It assumes that nodes and pods are divisible, and applies only resources and, for the rule
// that needs the most nodes, their number. Pods on reservations are left out, because those are
// already paid for.
//
// Each party has its own prices, computed as if its pods were alone. No column may be worth more than
// it costs even if each of its resources goes to the party with the highest price; the prices of all
// parties that could use it are scaled down until that holds.
func (p *Packer) Bound() float64 {
	was := p.problem.Policy.Tight
	p.problem.Policy.Tight = false
	defer func() { p.problem.Policy.Tight = was }()
	all := make([]int, 0, len(p.problem.Columns))
	for k := range p.problem.Columns {
		if p.problem.Columns[k].Supply == 0 {
			all = append(all, k)
		}
	}
	return p.boundOf(all, p.parties())
}

func (p *Packer) boundOf(columns []int, parties []party) float64 {
	p.appraise(columns, parties)
	scale := p.overpaid(columns, parties)
	// Parties that were appraised together share their prices and the bound.
	worst := map[*float64]float64{}
	for i := range parties {
		at := &parties[i].prices[0]
		worst[at] = max(worst[at], scale[i])
	}
	sum := 0.0
	for i := range parties {
		if at := &parties[i].prices[0]; worst[at] > 0 {
			sum += parties[i].bound / worst[at]
			worst[at] = 0
		}
	}
	return sum
}

// parties groups the pods in bins into parties.
func (p *Packer) parties() []party {
	var out []party
	for b := range p.bins {
		if p.problem.Columns[p.bins[b].Column].Supply > 0 {
			continue
		}
		for _, part := range p.bins[b].Parts {
			lot := &p.lots[part.Lot]
			g := 0
			for g < len(out) && (out[g].planes != lot.Planes || !same(out[g].columns, lot.Columns)) {
				g++
			}
			if g == len(out) {
				out = append(out, party{columns: lot.Columns, planes: lot.Planes, demand: make([]float64, p.problem.Dims+1)})
			}
			p.demand(out[g].demand, lot, part.Count)
		}
	}
	return out
}

// demand adds n pods of a lot; the last entry counts nodes.
func (p *Packer) demand(into []float64, lot *Lot, n int) {
	for r, need := range lot.Need {
		into[r] += float64(float64(need) * float64(n))
	}
	if p.hosted(lot) {
		into[len(lot.Need)] += float64(n) / float64(p.problem.Rules[p.lonely].WithMember)
	}
}

// appraise computes the prices of each party. Parties for which all columns cost the same count as
// one, such as parties in different zones with equal prices: they compete for the same types.
func (p *Packer) appraise(columns []int, parties []party) {
	for i := range parties {
		if parties[i].prices != nil {
			continue
		}
		demand := slices.Clone(parties[i].demand)
		alike, planes := []int{i}, parties[i].planes
		for j := i + 1; j < len(parties); j++ {
			if parties[j].prices == nil && same(parties[i].columns, parties[j].columns) && p.equalPrices(columns, &parties[i], &parties[j]) {
				alike, planes = append(alike, j), planes|parties[j].planes
				for r, d := range parties[j].demand {
					demand[r] += d
				}
			}
		}
		// Parties differ more in planes than in columns, so the columns of the last solution are a
		// good guess for the next one.
		var prices []float64
		var bound float64
		prices, bound, p.decisive = worth(demand, p.rows(columns, parties[i].columns, planes), p.decisive)
		for _, j := range alike {
			parties[j].prices, parties[j].bound = prices, bound
		}
	}
}

// equalPrices reports whether every column that both could buy costs them the same.
func (p *Packer) equalPrices(columns []int, a, b *party) bool {
	for _, k := range columns {
		if c := &p.problem.Columns[k]; a.columns.Has(k) && c.planes&a.planes != 0 && c.planes&b.planes != 0 && c.price(a.planes) != c.price(b.planes) {
			return false
		}
	}
	return true
}

// rows returns the columns as rows of the linear program, valid until the next call.
func (p *Packer) rows(columns []int, in Set, planes uint64) []offerRow {
	if p.scratch.rows == nil {
		p.scratch.rows = make([]offerRow, 0, len(p.problem.Columns))
	}
	out := p.scratch.rows[:0]
	for _, k := range columns {
		if !in.Has(k) {
			continue
		}
		c := &p.problem.Columns[k]
		if price := p.cost(c, planes); !math.IsInf(price, 1) && price > 0 {
			out = append(out, offerRow{room: p.room(k), price: price, column: k})
		}
	}
	p.scratch.rows = out
	return out
}

// room returns a column's room as the linear program uses it.
func (p *Packer) room(k int) []float64 {
	if p.rooms == nil {
		p.rooms = p.makeRooms()
	}
	size := p.problem.Dims + 1
	return p.rooms[k*size : (k+1)*size]
}

func (p *Packer) makeRooms() []float64 {
	out := make([]float64, 0, len(p.problem.Columns)*(p.problem.Dims+1))
	for k := range p.problem.Columns {
		for _, room := range p.problem.Columns[k].Room {
			out = append(out, float64(max(0, room)))
		}
		out = append(out, 1)
	}
	return out
}

// overpaid returns, for each party, the highest ratio of value to price over its columns; at least 1.
// Prices divided by these ratios overvalue no column.
func (p *Packer) overpaid(columns []int, parties []party) []float64 {
	worst, who := make([]float64, len(parties)), make([]int, 0, len(parties))
	for i := range worst {
		worst[i] = 1
	}
	cohorts := cohorts{parties: parties}
	for _, k := range columns {
		c, room := &p.problem.Columns[k], p.room(k)
		who = who[:0]
		least := math.Inf(1)
		for i := range parties {
			if parties[i].columns.Has(k) && parties[i].planes&c.planes != 0 {
				who, least = append(who, i), min(least, worst[i])
			}
		}
		if len(who) == 0 {
			continue
		}
		buyers := cohorts.of(who)
		if cohorts.value(buyers, c.planes, room) <= least*c.price(c.planes) {
			continue // Not overvalued even at the cheapest offer, with all planes combined.
		}
		for _, o := range c.Offers {
			if o.Price <= 0 {
				continue
			}
			ratio := cohorts.value(buyers, 1<<o.Plane, room) / o.Price
			for _, i := range who {
				if parties[i].planes&(1<<o.Plane) != 0 {
					worst[i] = max(worst[i], ratio)
				}
			}
		}
	}
	return worst
}
