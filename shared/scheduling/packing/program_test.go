package packing

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"
)

// TestProgramIsOptimal compares the sum of the unknowns, after every cut, with what
// another solver finds for all cuts at once.
func TestProgramIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "unknowns")
		most, cuts := make([]float64, n), [][]float64{}
		for i := range most { // Each alone has a cut that implies its most.
			most[i] = rapid.Float64Range(0.1, 1).Draw(t, "most")
			cuts = append(cuts, drawnCut(t, n))
			cuts[i][i] = 1 / most[i]
		}
		p := newProgram(most)
		for _, cut := range cuts {
			p.cut(cut)
		}
		for range rapid.IntRange(0, 12).Draw(t, "later") {
			p.solve()
			cuts = append(cuts, drawnCut(t, n))
			p.cut(cuts[len(cuts)-1])
		}
		p.solve()
		sum := 0.0
		for i := range n {
			sum += p.x(i)
		}
		for _, cut := range cuts {
			if over := value(p, cut); over > 1+1e-6 {
				t.Fatalf("%v exceeds %v: %v", p.rows, cut, over)
			}
		}
		if want := solved(cuts, n); math.Abs(sum-want) > 1e-6*want {
			t.Fatalf("the sum is %v, want %v", sum, want)
		}
	})
}

func drawnCut(t *rapid.T, n int) []float64 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0.01, 8)), n, n).Draw(t, "cut")
}

func value(p *program, cut []float64) float64 {
	sum := 0.0
	for i, factor := range cut {
		sum += p.x(i) * factor
	}
	return sum
}

// solved is the largest sum by gonum's solver.
func solved(cuts [][]float64, n int) float64 {
	m := len(cuts)
	a, b, c, basis := mat.NewDense(m, n+m, nil), make([]float64, m), make([]float64, n+m), make([]int, m)
	for i, cut := range cuts {
		for j, factor := range cut {
			a.Set(i, j, factor)
		}
		a.Set(i, n+i, 1)
		b[i], basis[i] = 1, n+i
	}
	for j := range n {
		c[j] = -1
	}
	least, _, err := lp.Simplex(c, a, b, 1e-9, basis)
	if err != nil {
		panic(err)
	}
	return -least
}
