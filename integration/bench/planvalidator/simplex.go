package planvalidator

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

const (
	// exact is the simplex method's tolerance.
	exact = 1e-10
	// apart keeps limits of nothing from coinciding, in US dollars an hour; it is
	// far below gapEnough.
	apart = 1e-9
)

// unknown is one of those of the dual: what a class pays for a resource, what a
// host costs, or what an existing column earns.
type unknown struct {
	class, resource int
	rent            int
}

// pay finds the prices of the highest value that keep some limits.
func (p *programme) pay(limits []limit) (prices, float64, error) {
	index, worth := p.unknowns(limits)
	width := len(worth)
	a := mat.NewDense(len(limits), width+len(limits), nil)
	b, start := make([]float64, len(limits)), make([]int, len(limits))
	for i, l := range limits {
		for u, q := range p.row(l) {
			a.Set(i, index[u], q)
		}
		// The method starts from the slacks.
		a.Set(i, width+i, 1)
		b[i], start[i] = p.columns[l.column].price+apart*float64(i+1), width+i
	}
	least, x, err := lp.Simplex(append(worth, make([]float64, len(limits))...), a, b, exact, start)
	if err != nil {
		return prices{}, 0, fmt.Errorf("by the simplex method: %w", err)
	}
	out := prices{}
	for range p.classes {
		out.of = append(out.of, make([]float64, len(p.resources)))
	}
	for u, at := range index {
		switch {
		case u == theHost:
			out.host = x[at]
		case u.class >= 0:
			out.of[u.class][u.resource] = x[at]
		}
	}
	return out, -least, nil
}

// theHost is the unknown that a host costs.
var theHost = unknown{class: -1, rent: -1}

// row is what the unknowns come to in a limit.
func (p *programme) row(l limit) map[unknown]float64 {
	col, out := p.columns[l.column], map[unknown]float64{}
	for r, room := range col.room {
		if room != 0 {
			out[unknown{class: l.class[r], resource: r, rent: -1}] = room
		}
	}
	if col.hosts != 0 {
		out[theHost] = col.hosts
	}
	if col.exists {
		out[unknown{class: -1, rent: l.column}] = -1
	}
	return out
}

// unknowns numbers those that the limits have, and says what each is worth, with
// its sign changed because the method looks for the least.
func (p *programme) unknowns(limits []limit) (map[unknown]int, []float64) {
	index, worth := map[unknown]int{}, []float64{}
	for _, l := range limits {
		for u := range p.row(l) {
			if _, seen := index[u]; seen {
				continue
			}
			index[u] = len(worth)
			switch {
			case u == theHost:
				worth = append(worth, -p.hosts)
			case u.class >= 0:
				worth = append(worth, -p.classes[u.class][u.resource])
			default:
				worth = append(worth, 1)
			}
		}
	}
	return index, worth
}
