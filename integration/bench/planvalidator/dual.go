package planvalidator

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The program is solved from its dual, where every column is a limit on what
// pods pay: a price for each class and resource, and one for a host of one's
// own, so that no column earns more than it costs. Where several classes may be
// on a column, each of its resources goes to the class that pays most. That
// makes a limit for every way to share, of which only those are written down
// that some prices broke. Prices that keep all limits prove their value to be a
// bound, so nothing depends on how well the search for them went.

const (
	roundsMax = 400
	// limitsAdded are the most that one round adds.
	limitsAdded = 25
	// gapEnough ends the search: the part that may still be missing to the best
	// bound.
	gapEnough = 1e-4
)

// prices are what is paid per class and resource, and for a host.
type prices struct {
	of   [][]float64
	host float64
}

// limit is a column and, for each of its resources, the class that gets it.
type limit struct {
	column int
	class  []int
	// broken is by how much the prices at hand exceed it, as a fraction.
	broken float64
}

// solve returns the value of prices that keep all limits.
func (p *programme) solve() (float64, error) {
	limits, known := p.opening(), map[string]bool{}
	if len(limits) == 0 {
		return 0, nil // nobody sells what they need: they fit on what exists, or nowhere
	}
	best := 0.0
	for range roundsMax {
		paid, value, err := p.pay(limits)
		if err != nil {
			return 0, err
		}
		proved, broken := p.prove(paid)
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

// opening limits every price: for each class and resource, by the offering that
// sells it cheapest. What no offering sells is priced nowhere, as if given.
func (p *programme) opening() []limit {
	var limits []limit
	for c := range p.classes {
		for r := range p.resources {
			best := p.cheapest(func(col column) float64 {
				if !col.serves[c] {
					return 0
				}
				return col.room[r]
			})
			if best < 0 {
				p.classes[c][r] = 0
				continue
			}
			limits = append(limits, limit{column: best, class: slices.Repeat([]int{c}, len(p.resources))})
		}
	}
	if best := p.cheapest(func(col column) float64 { return col.hosts }); best < 0 {
		p.hosts = 0
	} else {
		_, l := p.earning(best, prices{of: make([][]float64, len(p.classes))})
		limits = append(limits, l)
	}
	return limits
}

// cheapest is the offering that costs least per unit of something, or -1.
func (p *programme) cheapest(units func(column) float64) int {
	best, least := -1, math.Inf(1)
	for i, col := range p.columns {
		if n := units(col); !col.exists && n > 0 && col.price/n < least {
			best, least = i, col.price/n
		}
	}
	return best
}

// earning is the most that a column can earn, and from whom.
func (p *programme) earning(i int, paid prices) (float64, limit) {
	col := p.columns[i]
	l := limit{column: i, class: slices.Repeat([]int{slices.Index(col.serves, true)}, len(p.resources))}
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

// prove lowers prices until they keep all limits, and returns their value and
// the limits that they broke before, worst first.
func (p *programme) prove(paid prices) (float64, []limit) {
	value := p.hosts * paid.host
	for c, demand := range p.classes {
		for r, q := range demand {
			value += q * paid.of[c][r]
		}
	}
	var broken []limit
	lowered := 1.0
	for i, col := range p.columns {
		earned, l := p.earning(i, paid)
		if col.exists {
			value -= earned // it costs nothing, so what it earns is nobody's saving
			l.broken = 1
			broken = append(broken, l)
			continue
		}
		if l.broken = earned/col.price - 1; l.broken > 0 {
			broken = append(broken, l)
			lowered = min(lowered, col.price/earned)
		}
	}
	slices.SortStableFunc(broken, func(a, b limit) int { return cmp.Compare(b.broken, a.broken) })
	return value * lowered, broken
}
