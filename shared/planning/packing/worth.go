package packing

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

const (
	// offersMax bounds the rounds of the linear program; it needs about ten.
	offersMax = 60
	// apart keeps the demands of resources apart by so little that the bound does
	// not show it. If they were met exactly by fewer columns than there are
	// resources, these would not tell what each resource is worth.
	apart = 1e-7
)

// Sold is a way to buy room: so much of each resource, for a price in dollars an
// hour.
type Sold struct {
	Room  []float64
	Price float64
}

// Prices are what a unit of each resource is worth where these are sold, in dollars
// an hour: no way to buy is worth more than it costs, and the demand is worth the
// most. They are zero where something is demanded that nobody sells.
func Prices(demand []float64, sold []Sold) []float64 {
	rows := make([]offerRow, len(sold))
	for i, one := range sold {
		rows[i] = offerRow{room: one.Room, price: one.Price, column: i}
	}
	prices, _, _ := worth(demand, rows, nil)
	return prices
}

// offerRow is what the program sees of a column: its room by dimension, none of it
// less than nothing, one node, and its price.
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
// These prices are the dual of a program that buys fractions of columns: the
// demand, as cheaply as it can be had. It begins with the best column for each
// resource alone, and takes in the column that is most overpaid. A guess of the
// columns that are bought in the end saves rounds; those that were are returned. The
// rows are in the order of their columns.
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

// demanded are the dimensions of which anything is.
func demanded(demand []float64) (dims []int) {
	for r, d := range demand {
		if d > 0 {
			dims = append(dims, r)
		}
	}
	return dims
}

// alone finds what a unit of each resource costs if nothing else is wanted of a
// row, and the rows that are cheapest so; no row when something is demanded that
// none has.
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

// market is the program in the standard form of the solver: the least cost·x for
// which room·x = wanted, and no x is negative. All is counted in dollars, the
// demand of a resource and the room for it at what it costs alone, and x is what is
// spent on a column; so that no number is far from one.
//
// The columns of the program are, first, each resource alone, which is a basis to
// begin with, and changes no answer, for there is a column that has as much of it
// at the same price, and more; then what is left over of each resource; and then
// the columns that are offered.
type market struct {
	alone        []float64
	rows         []offerRow
	dims         []int
	room         *mat.Dense
	wanted, cost []float64
	offered      []int
	// basis are the columns of which something is taken, as many as resources.
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

// offer takes in the k-th row, unless it has nothing that is wanted.
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

// begin takes the column that is cheapest if nothing else is bought for a basis,
// with what is left over of all but the resource that decides how much of it is
// needed. It is nearer to the answer than each resource alone, which stays the basis
// when no column has room for everything.
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

// bought are the columns of which something is.
func (m *market) bought() (columns []int) {
	for _, k := range m.basis {
		if at := k - 2*len(m.dims); at >= 0 {
			columns = append(columns, m.rows[m.offered[at]].column)
		}
	}
	return columns
}

// appraise finds the prices at which whatever is bought is worth what it costs, and
// what is left over nothing. They stay as they are when the solver gives up.
func (m *market) appraise(prices []float64) (ok bool) {
	defer func() {
		if recover() != nil { // The solver panics on what it takes for a singular basis.
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

// overpaid finds the column whose room is worth most in proportion to its price;
// only some dimensions have a price.
func overpaid(prices []float64, rows []offerRow, dims []int) (at int, ratio float64) {
	for k := range rows {
		if got := rows[k].paid(prices, dims); got > ratio {
			at, ratio = k, got
		}
	}
	return at, ratio
}

// paid is what the room of a column is worth in proportion to its price.
func (o *offerRow) paid(prices []float64, dims []int) float64 {
	sum := 0.0
	for _, r := range dims {
		sum += float64(prices[r] * o.room[r])
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
