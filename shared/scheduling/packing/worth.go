package packing

import (
	"math"
	"slices"
)

// cutsMax bounds the rounds of the linear program; it needs about ten.
const cutsMax = 60

// offerRow is what the program sees of a column: its room by dimension, one node,
// and its price.
type offerRow struct {
	room   []float64
	price  float64
	column int
}

// worth finds prices of resources, in dollars an hour for a unit, under which no
// column is worth more than it costs, and the demand is worth the most. That sum
// is a lower bound on the cost of the demand: any node of price p has room worth
// at most p. The answer is feasible whatever the solver returns, for it is scaled
// until no column is overpaid.
//
// The program is solved by cutting planes: it begins with the best column for
// each resource alone, and takes in the column that is most overpaid. A guess of
// the columns that decide saves rounds; those that did are returned.
func worth(demand []float64, rows []offerRow, guess []int) (prices []float64, bound float64, decisive []int) {
	prices = make([]float64, len(demand))
	dims := demanded(demand)
	cuts, scale := firstCuts(demand, prices, rows, dims)
	if scale <= 0 {
		clear(prices)
		return prices, 0, guess
	}
	for k := range rows {
		if len(cuts) < cutsMax && slices.Contains(guess, rows[k].column) && !slices.Contains(cuts, k) {
			cuts = append(cuts, k)
		}
	}
	m := newMarket(demand, prices, rows, dims, scale)
	for _, k := range cuts {
		m.cut(k)
	}
	for {
		m.solve(prices)
		k, over := overpaid(prices, rows)
		if over <= 1+1e-6 || len(cuts) >= cutsMax || slices.Contains(cuts, k) {
			return prices, feasible(prices, demand, over), decided(cuts, prices, rows)
		}
		cuts = append(cuts, k)
		m.cut(k)
	}
}

// decided are the columns that cost just what they are worth.
func decided(cuts []int, prices []float64, rows []offerRow) (columns []int) {
	for _, k := range cuts {
		if rows[k].paid(prices) > 1-1e-6 {
			columns = append(columns, rows[k].column)
		}
	}
	return columns
}

// demanded are the dimensions of which anything is.
func demanded(demand []float64) (dims []int) {
	for r, d := range demand {
		if d > 0 {
			dims = append(dims, r)
		}
	}
	return dims
}

// firstCuts are the cheapest rows for each resource alone, and the largest of
// their costs, which scales the program; 0 when something is demanded that no row
// has.
func firstCuts(demand, prices []float64, rows []offerRow, dims []int) (cuts []int, scale float64) {
	cuts = make([]int, 0, cutsMax)
	for _, r := range dims {
		best, cheapest := math.Inf(1), -1
		for k := range rows {
			if rows[k].room[r] <= 0 {
				continue
			}
			if cost := demand[r] / rows[k].room[r] * rows[k].price; cost < best {
				best, cheapest = cost, k
			}
		}
		if cheapest < 0 {
			return nil, 0
		}
		// Until the program knows better, each resource is worth what it costs alone.
		prices[r], scale = best/demand[r], max(scale, best)
		if !slices.Contains(cuts, cheapest) {
			cuts = append(cuts, cheapest)
		}
	}
	return cuts, scale
}

// market is the program in which the unknowns are what all that is demanded of each
// resource is worth, and a column is a cut.
type market struct {
	*program
	demand []float64
	rows   []offerRow
	dims   []int
	scale  float64
	row    []float64
}

func newMarket(demand, prices []float64, rows []offerRow, dims []int, scale float64) market {
	m := market{demand: demand, rows: rows, dims: dims, scale: scale, row: make([]float64, len(dims))}
	for i, r := range dims {
		m.row[i] = prices[r] * demand[r] / scale
	}
	m.program = newProgram(m.row)
	return m
}

// cut says that the k-th column is not to be worth more than it costs.
func (m *market) cut(k int) {
	for i, r := range m.dims {
		m.row[i] = m.rows[k].room[r] * m.scale / (m.demand[r] * m.rows[k].price)
	}
	m.program.cut(m.row)
}

func (m *market) solve(prices []float64) {
	m.program.solve()
	for i, r := range m.dims {
		prices[r] = m.x(i) * (m.scale / m.demand[r])
	}
}

// overpaid finds the column whose room is worth most in proportion to its price.
func overpaid(prices []float64, rows []offerRow) (at int, ratio float64) {
	for k := range rows {
		if got := rows[k].paid(prices); got > ratio {
			at, ratio = k, got
		}
	}
	return at, ratio
}

// paid is what the room of a column is worth in proportion to its price.
func (o *offerRow) paid(prices []float64) float64 {
	sum := 0.0
	for r, p := range prices {
		sum += float64(p * max(0, o.room[r]))
	}
	return sum / o.price
}

// feasible scales prices under which columns are overpaid by a ratio until none is,
// and says what the demand is worth then.
func feasible(prices, demand []float64, ratio float64) (bound float64) {
	for r := range prices {
		if ratio > 0 {
			prices[r] /= ratio
		}
		bound += float64(prices[r] * demand[r])
	}
	return bound
}
