package planvalidator

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The program is solved from its dual: a price for each class and resource, and one for a
// host that pods must not share. Each nodeOption is a constraint: the prices of what it
// can hold must not exceed its cost. If several classes can use an option, each of its
// resources goes to the class with the highest price. That yields one constraint for
// every way to share, of which only those are added that some prices violate. Prices that
// meet all constraints prove a lower bound, also if the search for the best prices was
// not complete.

const (
	roundsMax = 400
	// limitsAdded is the maximum number of constraints that one round adds.
	limitsAdded = 25
	// gapEnough ends the search when the relative distance to the best bound is at most
	// this.
	gapEnough = 1e-4
)

// shadowPrices are the dual prices of each class and resource, and of a host.
type shadowPrices struct {
	of   [][]float64
	host float64
}

// dualConstraint is a nodeOption and, for each of its resources, the class that gets it.
type dualConstraint struct {
	column int
	class  []int
	// broken is the excess of the current prices over the constraint, as a fraction.
	broken float64
}

// solveDual returns the value of prices that satisfy all constraints.
func (p *linearProgram) solveDual() (float64, error) {
	limits, known := p.initialConstraints(), map[string]bool{}
	if len(limits) == 0 {
		return 0, nil // no offering has what they need: they fit on existing nodes or nowhere
	}
	best := 0.0
	for range roundsMax {
		paid, value, err := p.solvePrices(limits)
		if err != nil {
			return 0, err
		}
		proved, broken := p.proveBound(paid)
		best = max(best, proved)
		if value-best <= gapEnough*value {
			return best, nil
		}
		was := len(limits)
		for _, l := range broken {
			if id := fmt.Sprint(l.column, l.class); !known[id] && len(limits) < was+limitsAdded {
				known[id] = true
				limits = append(limits, l)
			}
		}
		if len(limits) == was {
			return best, nil
		}
	}
	return 0, errors.New("the linear program did not settle")
}

// initialConstraints bounds each price by the cheapest offering of its resource. Resources without an offering
// have no price.
func (p *linearProgram) initialConstraints() []dualConstraint {
	var limits []dualConstraint
	for c := range p.classes {
		for r := range p.resources {
			best := p.cheapestOption(func(col nodeOption) float64 {
				if !col.serves[c] {
					return 0
				}
				return col.room[r]
			})
			if best < 0 {
				p.classes[c][r] = 0
				continue
			}
			limits = append(limits, dualConstraint{column: best, class: slices.Repeat([]int{c}, len(p.resources))})
		}
	}
	if best := p.cheapestOption(func(col nodeOption) float64 { return col.hosts }); best < 0 {
		p.hosts = 0
	} else {
		_, l := p.bestConstraint(best, shadowPrices{of: make([][]float64, len(p.classes))})
		limits = append(limits, l)
	}
	return limits
}

// cheapestOption returns the index of the offering with the lowest price per unit, or -1.
func (p *linearProgram) cheapestOption(units func(nodeOption) float64) int {
	best, least := -1, math.Inf(1)
	for i, col := range p.columns {
		if n := units(col); !col.exists && n > 0 && col.price/n < least {
			best, least = i, col.price/n
		}
	}
	return best
}

// bestConstraint returns the maximum earnings of a nodeOption and the constraint for
// them.
func (p *linearProgram) bestConstraint(i int, paid shadowPrices) (float64, dualConstraint) {
	col := p.columns[i]
	l := dualConstraint{column: i, class: slices.Repeat([]int{slices.Index(col.serves, true)}, len(p.resources))}
	sum := col.hosts * paid.host
	for r, room := range col.room {
		most := 0.0
		for c, serves := range col.serves {
			if serves && paid.of[c] != nil && paid.of[c][r] > most {
				most, l.class[r] = paid.of[c][r], c
			}
		}
		sum += room * most
	}
	return sum, l
}

// proveBound lowers prices until they meet all constraints, and returns their value and
// the violated constraints, worst first.
func (p *linearProgram) proveBound(paid shadowPrices) (float64, []dualConstraint) {
	value := p.hosts * paid.host
	for c, demand := range p.classes {
		for r, q := range demand {
			value += q * paid.of[c][r]
		}
	}
	var broken []dualConstraint
	lowered := 1.0
	for i, col := range p.columns {
		earned, l := p.bestConstraint(i, paid)
		if col.exists {
			value -= earned // it costs nothing, so its earnings save nothing
			l.broken = 1
			broken = append(broken, l)
			continue
		}
		if l.broken = earned/col.price - 1; l.broken > 0 {
			broken = append(broken, l)
			lowered = min(lowered, col.price/earned)
		}
	}
	slices.SortStableFunc(broken, func(a, b dualConstraint) int { return cmp.Compare(b.broken, a.broken) })
	return value * lowered, broken
}
