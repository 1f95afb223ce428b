package packing

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

const (
	// offersMax is the maximum number of rounds of the linear program; it needs about ten.
	offersMax = 60
	// apart changes the demands so slightly that the bound does not show it. If fewer columns than
	// resources met the demands exactly, the prices would not be unique.
	apart = 1e-7
)

// Sold is a way to buy room: an amount of each resource for a price in US dollars an hour.
type Sold struct {
	Room  []float64
	Price float64
}

// Prices returns shadow prices of resources, in US dollars an hour for a unit: no way to buy is worth
// more than it costs, and the value of the demand is as high as possible. They are zero if nothing
// provides a demanded resource.
func Prices(demand []float64, sold []Sold) []float64 {
	rows := make([]offerRow, len(sold))
	for i, one := range sold {
		rows[i] = offerRow{room: one.Room, price: one.Price, column: i}
	}
	prices, _, _ := worth(demand, rows, nil)
	return prices
}

// offerRow is a column in the linear program: its room by dimension, not negative, with 1 as the last
// entry for the node itself, and its price.
type offerRow struct {
	room   []float64
	price  float64
	column int
}

// worth returns shadow prices of resources, in US dollars an hour for a unit, under which no column is
// worth more than it costs and the value of the demand is as high as possible. That value is a lower
// bound on the cost of the demand: any node of price p has room worth at most p. The result is
// feasible even if the solver fails, because it is scaled until no column is worth more than its
// price.
//
// The prices are the dual of a program that buys fractions of columns to meet the demand as cheaply as
// possible. It starts with the best column for each resource alone, and then repeatedly adds the
// column whose value exceeds its price the most. A guess of the columns that will be bought saves
// rounds; the columns bought are returned. The rows must be sorted by column.
func worth(demand []float64, rows []offerRow, guess []int) (prices []float64, bound float64, bought []int) {
	prices = make([]float64, len(demand))
	dims := demanded(demand)
	first := alone(prices, rows, dims)
	if len(first) == 0 {
		clear(prices)
		return prices, 0, guess
	}
	m := newMarket(demand, prices, rows, dims)
	for _, column := range guess {
		if k, ok := slices.BinarySearchFunc(rows, column, func(o offerRow, column int) int { return cmp.Compare(o.column, column) }); ok {
			first = append(first, k)
		}
	}
	slices.Sort(first)
	for _, k := range slices.Compact(first) {
		m.offer(k)
	}
	m.begin()
	for {
		solved := m.appraise(prices)
		k, over := overpaid(prices, rows, dims)
		if !solved || over <= 1+1e-6 || len(m.offered) >= offersMax || slices.Contains(m.offered, k) {
			return prices, feasible(prices, demand, over), m.bought()
		}
		m.offer(k)
	}
}

// demanded returns the dimensions with demand.
func demanded(demand []float64) (dims []int) {
	for r, d := range demand {
		if d > 0 {
			dims = append(dims, r)
		}
	}
	return dims
}

// alone sets the price of each resource as if nothing else of a row were used, and returns the
// cheapest rows; none if no row has a demanded resource.
func alone(prices []float64, rows []offerRow, dims []int) (cheapest []int) {
	cheapest = make([]int, len(dims))
	for i, r := range dims {
		prices[r], cheapest[i] = math.Inf(1), -1
	}
	for k := range rows {
		row := &rows[k]
		for i, r := range dims {
			if room := row.room[r]; room > 0 && row.price < float64(prices[r]*room) {
				prices[r], cheapest[i] = row.price/room, k
			}
		}
	}
	if slices.Contains(cheapest, -1) {
		return nil
	}
	return cheapest
}

// market is the program in the standard form of the solver: minimize cost·x so that room·x = wanted
// and no x is negative. All values are in dollars: demand and room at the resource's price alone, and
// x as the money spent on a column, so that all numbers are near one.
//
// The columns of the program are, in order: each resource alone, as the initial basis, which does not
// change the result because a real column has as much at the same price; the surplus of each resource;
// and the offered rows.
type market struct {
	alone        []float64
	rows         []offerRow
	dims         []int
	room         *mat.Dense
	wanted, cost []float64
	offered      []int
	// basis are the columns in use, as many as there are resources.
	basis []int
}

func newMarket(demand, prices []float64, rows []offerRow, dims []int) *market {
	n := len(dims)
	m := &market{
		alone: slices.Clone(prices), rows: rows, dims: dims,
		room:   mat.NewDense(n, 2*n+offersMax, nil).Slice(0, n, 0, 2*n).(*mat.Dense),
		wanted: make([]float64, n), cost: make([]float64, 2*n, 2*n+offersMax), basis: make([]int, n),
	}
	total := 0.0
	for r, d := range demand {
		total += float64(d * prices[r])
	}
	for i, r := range dims {
		m.wanted[i] = demand[r] * prices[r] / total * (1 + float64(float64(i)*apart))
		m.room.Set(i, i, 1)
		m.room.Set(i, n+i, -1)
		m.cost[i], m.basis[i] = 1, i
	}
	return m
}

// offer adds the k-th row, unless it has no demanded resource.
func (m *market) offer(k int) {
	if !slices.ContainsFunc(m.dims, func(r int) bool { return m.rows[k].room[r] > 0 }) {
		return
	}
	at := len(m.cost)
	m.room = m.room.Grow(0, 1).(*mat.Dense)
	for i, r := range m.dims {
		m.room.Set(i, at, m.rows[k].room[r]/m.rows[k].price*m.alone[r])
	}
	m.cost, m.offered = append(m.cost, 1), append(m.offered, k)
}

// begin sets the initial basis: the column that is cheapest if nothing else is bought, and the surplus
// of all resources but the one that decides how much is needed. It is nearer to the result than each
// resource alone, which stays the basis if no column has room for everything.
func (m *market) begin() {
	n, least := len(m.dims), math.Inf(1)
	for k := 2 * n; k < len(m.cost); k++ {
		most, scarce := 0.0, 0
		for i := range n {
			if need := m.wanted[i] / m.room.At(i, k); need > most {
				most, scarce = need, i
			}
		}
		if most >= least {
			continue
		}
		least = most
		for i := range n {
			m.basis[i] = n + i
		}
		m.basis[scarce] = k
	}
}

// bought returns the columns in the basis.
func (m *market) bought() (columns []int) {
	for _, k := range m.basis {
		if at := k - 2*len(m.dims); at >= 0 {
			columns = append(columns, m.rows[m.offered[at]].column)
		}
	}
	return columns
}

// appraise computes the prices at which each bought column is worth its cost and surplus is worth
// nothing. It leaves prices unchanged and returns false if the solver fails.
func (m *market) appraise(prices []float64) (ok bool) {
	defer func() {
		if recover() != nil { // The solver panics on a basis that looks singular.
			ok = false
		}
	}()
	_, x, err := lp.Simplex(m.cost, m.room, m.wanted, 1e-9, m.basis)
	if err != nil {
		return false
	}
	m.basis = m.basis[:0]
	for k, taken := range x {
		if taken != 0 {
			m.basis = append(m.basis, k)
		}
	}
	n := len(m.basis)
	taken, costs := mat.NewDense(n, len(m.dims), nil), mat.NewVecDense(n, nil)
	for i, k := range m.basis {
		taken.SetRow(i, mat.Col(nil, k, m.room))
		costs.SetVec(i, m.cost[k])
	}
	var shares mat.VecDense
	if n != len(m.dims) || shares.SolveVec(taken, costs) != nil {
		return false
	}
	for i, r := range m.dims {
		prices[r] = m.alone[r] * max(0, shares.AtVec(i))
	}
	return true
}

// overpaid returns the row with the highest ratio of value to price, over the given dimensions.
func overpaid(prices []float64, rows []offerRow, dims []int) (at int, ratio float64) {
	for k := range rows {
		if got := rows[k].paid(prices, dims); got > ratio {
			at, ratio = k, got
		}
	}
	return at, ratio
}

// paid returns the ratio of a row's value to its price.
func (o *offerRow) paid(prices []float64, dims []int) float64 {
	sum := 0.0
	for _, r := range dims {
		sum += float64(prices[r] * o.room[r])
	}
	return sum / o.price
}

// feasible divides prices by the ratio, so that no column is worth more than it costs, and returns the
// value of the demand.
func feasible(prices, demand []float64, ratio float64) (bound float64) {
	for r := range prices {
		if ratio > 0 {
			prices[r] /= ratio
		}
		bound += float64(prices[r] * demand[r])
	}
	return bound
}
