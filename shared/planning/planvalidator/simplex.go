package planvalidator

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// exact is the reduced cost above which a column does not lower the costs.
const exact = 1e-9

// simplex minimizes the costs of nonnegative amounts of columns that sum to a demand. Columns may be added between
// runs, which go on from the last basis.
type simplex struct {
	demand  []float64
	costs   []float64
	columns [][]float64
	// start is a feasible basis, and basis the last one: the columns in use.
	start, basis []int
	// amounts are the used amounts of the columns, and prices are the costs of a unit of each row.
	amounts, prices []float64
}

// addColumn adds a column and returns its index.
func (s *simplex) addColumn(column []float64, cost float64) int {
	s.columns, s.costs = append(s.columns, column), append(s.costs, cost)
	return len(s.columns) - 1
}

// addUnit adds a column with a coefficient in one row.
func (s *simplex) addUnit(row int, coefficient, cost float64) int {
	column := make([]float64, len(s.demand))
	column[row] = coefficient
	return s.addColumn(column, cost)
}

// value returns the value of the demand at the prices.
func (s *simplex) value() float64 { return dot(s.demand, s.prices) }

// minimize finds the cheapest amounts, and sets the prices.
func (s *simplex) minimize() (err error) {
	if s.basis == nil {
		s.basis = s.start
	}
	if _, s.amounts, err = lp.Simplex(s.costs, s.matrixOf(s.columns), s.demand, exact, s.basis); err != nil {
		return fmt.Errorf("solving a linear program: %w", err)
	}
	s.basis = nil
	var costs []float64
	var columns [][]float64
	for j, amount := range s.amounts {
		if amount > 0 {
			s.basis, costs, columns = append(s.basis, j), append(costs, s.costs[j]), append(columns, s.columns[j])
		}
	}
	square := s.matrixOf(columns)
	var prices, amounts mat.VecDense
	if err := prices.SolveVec(square.T(), mat.NewVecDense(len(costs), costs)); err != nil {
		return fmt.Errorf("computing prices: %w", err)
	}
	s.prices = prices.RawVector().Data
	// A run cannot go on from a basis of which the rounding error makes an amount negative.
	err = amounts.SolveVec(square, mat.NewVecDense(len(s.demand), s.demand))
	if err != nil || len(s.basis) < len(s.demand) || slices.Min(amounts.RawVector().Data) < 0 {
		s.basis = nil
	}
	return nil
}

func (s *simplex) matrixOf(columns [][]float64) *mat.Dense {
	m := mat.NewDense(len(s.demand), len(columns), nil)
	for j, column := range columns {
		m.SetCol(j, column)
	}
	return m
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// addScaled adds a multiple of a vector.
func addScaled(to []float64, factor float64, vector []float64) {
	for i, x := range vector {
		to[i] += factor * x
	}
}
