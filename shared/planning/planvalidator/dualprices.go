package planvalidator

import (
	"cmp"
	"math"
	"slices"
)

// The program is solved by column generation. Its dual has a price for each row: what covers a unit of the row is
// worth. Prices prove a lower bound if on each nodeOption the most valuable pods that fit there are worth no more
// than the option costs, whether or not better prices exist. A round asks the simplex method for the best prices
// for the patterns so far, and looks for patterns that are worth more than their option. The best prices swing from
// round to round, so a round tries prices between these and the best that were proved.

const (
	roundsMax = 300
	// patternsAdded is the maximum number of patterns that one round adds.
	patternsAdded = 40
	// inertia is the weight of the best proved prices in the prices that a round tries.
	inertia = 0.6
	// gapEnough ends the search when the relative distance to the best bound is at most this.
	gapEnough = 1e-3
	// gapKept is the part of the distance above which what a round keeps of it makes the searches longer.
	gapKept = 0.98
	// excessEnough is the relative excess of a pattern's worth over its cost which is not looked for.
	excessEnough = 2e-4
)

// pattern is a set of pods, as their number by type, on a nodeOption.
type pattern struct {
	option int
	pods   []float64
	// excess is its worth at the current prices minus its cost, as a fraction of its cost.
	excess float64
}

// solveDual returns the value of prices that satisfy all constraints.
func (p *linearProgram) solveDual() (float64, error) {
	m := p.newMaster()
	best, last, steps, weight := 0.0, math.Inf(1), stepsLeast, inertia
	proved := make([]float64, len(m.demand))
	for range roundsMax {
		if err := m.minimize(); err != nil {
			return 0, err
		}
		tried := make([]float64, len(m.demand))
		addScaled(tried, weight, proved)
		addScaled(tried, 1-weight, m.prices)
		bound, lowered, found := p.proveBound(m.worthOf(tried), steps)
		if bound > best {
			best, proved = bound, make([]float64, len(m.demand))
			addScaled(proved, lowered, tried)
		}
		gap := m.value() - best
		if gap <= gapEnough*m.value() || len(found) == 0 && weight == 0 && steps == stepsMost {
			break
		}
		if gap > last*gapKept && steps < stepsMost {
			steps *= stepsFactor
		}
		weight = inertia
		if gap >= last {
			weight = 0 // the patterns that were found do not change the best prices
		}
		last = gap
		for _, one := range found[:min(len(found), patternsAdded)] {
			m.addPattern(one)
		}
	}
	return best, nil
}

// proveBound lowers the prices by a factor until they satisfy all constraints. It returns their value then, the
// factor, and the patterns that violated a constraint, worst first.
func (p *linearProgram) proveBound(y dualPrices, steps int) (bound, lowered float64, found []pattern) {
	value := 0.0
	lowered = 1
	for t, one := range p.types {
		value += float64(one.count) * y.pods[t]
	}
	for l, left := range p.limits {
		value -= left * y.limits[l]
	}
	for i := range p.columns {
		o := &p.columns[i]
		cost := y.costOf(i, o)
		k := p.newKnapsack(o, y.pods)
		worth := k.maximize(cost*(1+excessEnough), steps)
		excess := 0.0
		switch {
		case o.exists:
			value -= worth // there is only one, so its pods cost what it could earn at most
			excess = 1
		case worth > cost:
			lowered = min(lowered, o.price/(worth-cost+o.price))
			excess = (k.best - cost) / o.price
		}
		if k.found != nil {
			found = append(found, pattern{option: i, pods: k.found, excess: excess})
		}
		if worth > k.best && steps == stepsMost {
			found = append(found, pattern{option: i, pods: k.fractions, excess: excess})
		}
	}
	slices.SortStableFunc(found, func(a, b pattern) int { return cmp.Compare(b.excess, a.excess) })
	return value * lowered, lowered, found
}
