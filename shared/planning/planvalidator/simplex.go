package planvalidator

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

const (
	// exact is the tolerance of the simplex method.
	exact = 1e-10
	// apart keeps limits of zero distinct, in US dollars per hour; it is far below
	// gapEnough.
	apart = 1e-9
)

// variable is a variable of the dual: the price of a resource for a class, of a host, or of an existing node.
type variable struct {
	class, resource int
	rent            int
}

// solvePrices returns the prices of the highest value that satisfy the given constraints.
func (p *linearProgram) solvePrices(limits []dualConstraint) (shadowPrices, float64, error) {
	index, worth := p.numberVariables(limits)
	width := len(worth)
	a := mat.NewDense(len(limits), width+len(limits), nil)
	b, start := make([]float64, len(limits)), make([]int, len(limits))
	for i, l := range limits {
		for u, q := range p.coefficients(l) {
			a.Set(i, index[u], q)
		}
		// The method starts from the slacks.
		a.Set(i, width+i, 1)
		b[i], start[i] = p.columns[l.column].price+apart*float64(i+1), width+i
	}
	least, x, err := lp.Simplex(append(worth, make([]float64, len(limits))...), a, b, exact, start)
	if err != nil {
		return shadowPrices{}, 0, fmt.Errorf("solving by the simplex method: %w", err)
	}
	out := shadowPrices{}
	for range p.classes {
		out.of = append(out.of, make([]float64, len(p.resources)))
	}
	for u, at := range index {
		switch {
		case u == hostVariable:
			out.host = x[at]
		case u.class >= 0:
			out.of[u.class][u.resource] = x[at]
		}
	}
	return out, -least, nil
}

// hostVariable is the price of a host.
var hostVariable = variable{class: -1, rent: -1}

// coefficients returns the coefficients of the variables in a constraint.
func (p *linearProgram) coefficients(l dualConstraint) map[variable]float64 {
	col, out := p.columns[l.column], map[variable]float64{}
	for r, room := range col.room {
		if room != 0 {
			out[variable{class: l.class[r], resource: r, rent: -1}] = room
		}
	}
	if col.hosts != 0 {
		out[hostVariable] = col.hosts
	}
	if col.exists {
		out[variable{class: -1, rent: l.column}] = -1
	}
	return out
}

// numberVariables numbers the variables of the constraints and returns their values, negated for minimization.
func (p *linearProgram) numberVariables(limits []dualConstraint) (map[variable]int, []float64) {
	index, worth := map[variable]int{}, []float64{}
	for _, l := range limits {
		for u := range p.coefficients(l) {
			if _, seen := index[u]; seen {
				continue
			}
			index[u] = len(worth)
			switch {
			case u == hostVariable:
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
