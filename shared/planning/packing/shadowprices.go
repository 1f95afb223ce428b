package packing

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

const (
	// maxRounds is the maximum number of rounds of the linear program; it needs about ten.
	maxRounds = 60
	// tieBreak changes the demands so slightly that the bound does not show it. If fewer candidates than
	// resources met the demands exactly, the prices would not be unique.
	tieBreak = 1e-7
)

// PricedCapacity is a way to buy capacity: an amount of each resource for a price in US dollars an
// hour.
type PricedCapacity struct {
	Capacity []float64
	Price    float64
}

// ShadowPrices returns shadow prices of resources, in US dollars an hour for a unit: no way to buy
// is worth more than it costs, and the value of the demand is as high as possible. They are zero if
// nothing provides a demanded resource.
func ShadowPrices(demand []float64, offers []PricedCapacity) []float64 {
	rows := make([]programRow, len(offers))
	for i, one := range offers {
		rows[i] = programRow{capacity: one.Capacity, price: one.Price, candidate: i}
	}
	prices, _, _ := computeShadowPrices(demand, rows, nil)
	return prices
}

// programRow is a candidate in the linear program: its capacity by dimension, not negative, with 1 as
// the last entry for the node itself, and its price.
type programRow struct {
	capacity  []float64
	price     float64
	candidate int
}

// computeShadowPrices returns shadow prices of resources, in US dollars an hour for a unit, under
// which no candidate is worth more than it costs and the value of the demand is as high as
// possible. That value is a lower bound on the cost of the demand: the capacity of a node of price
// p is worth at most p. The result is feasible even if the solver fails, because it is scaled until
// no candidate is worth more than its price.
//
// The prices are the dual of a program that buys fractions of candidates to meet the demand as
// cheaply as possible. It starts with the best candidate for each resource alone, and then
// repeatedly adds the candidate whose value exceeds its price the most. A guess of the candidates
// that will be bought saves rounds; the candidates bought are returned. The rows must be sorted by
// candidate.
func computeShadowPrices(demand []float64, rows []programRow, guess []int) (prices []float64, bound float64, bought []int) {
	prices = make([]float64, len(demand))
	dims := listDemanded(demand)
	first := priceAlone(prices, rows, dims)
	if len(first) == 0 {
		clear(prices)
		return prices, 0, guess
	}
	m := newLinearProgram(demand, prices, rows, dims)
	for _, candidate := range guess {
		if k, ok := slices.BinarySearchFunc(rows, candidate, func(o programRow, candidate int) int { return cmp.Compare(o.candidate, candidate) }); ok {
			first = append(first, k)
		}
	}
	slices.Sort(first)
	for _, k := range slices.Compact(first) {
		m.addRow(k)
	}
	m.chooseBasis()
	for {
		solved := m.solvePrices(prices)
		k, over := mostOvervalued(prices, rows, dims)
		if !solved || over <= 1+1e-6 || len(m.added) >= maxRounds || slices.Contains(m.added, k) {
			return prices, scaleToFeasible(prices, demand, over), m.listBought()
		}
		m.addRow(k)
	}
}

// listDemanded returns the dimensions with demand.
func listDemanded(demand []float64) (dims []int) {
	for r, d := range demand {
		if d > 0 {
			dims = append(dims, r)
		}
	}
	return dims
}

// priceAlone sets the price of each resource as if nothing else of a row were used, and returns the
// cheapest rows; none if no row has a demanded resource.
func priceAlone(prices []float64, rows []programRow, dims []int) (cheapest []int) {
	cheapest = make([]int, len(dims))
	for i, r := range dims {
		prices[r], cheapest[i] = math.Inf(1), -1
	}
	for k := range rows {
		row := &rows[k]
		for i, r := range dims {
			if capacity := row.capacity[r]; capacity > 0 && row.price < float64(prices[r]*capacity) {
				prices[r], cheapest[i] = row.price/capacity, k
			}
		}
	}
	if slices.Contains(cheapest, -1) {
		return nil
	}
	return cheapest
}

// linearProgram is the program in the standard form of the solver: minimize cost·x so that
// capacity·x = wanted and no x is negative. All values are in dollars: demand and capacity at the
// resource's price alone, and x as the money spent on a candidate, so that all numbers are near
// one.
//
// The columns of the program are, in order: each resource alone, as the initial basis, which
// does not change the result because a real candidate has as much at the same price; the surplus of
// each resource; and the added rows.
type linearProgram struct {
	alonePrices  []float64
	rows         []programRow
	dims         []int
	capacity     *mat.Dense
	wanted, cost []float64
	added        []int
	// basis are the columns in use, as many as there are resources.
	basis []int
}

func newLinearProgram(demand, prices []float64, rows []programRow, dims []int) *linearProgram {
	n := len(dims)
	m := &linearProgram{
		alonePrices: slices.Clone(prices), rows: rows, dims: dims,
		capacity: mat.NewDense(n, 2*n+maxRounds, nil).Slice(0, n, 0, 2*n).(*mat.Dense),
		wanted:   make([]float64, n), cost: make([]float64, 2*n, 2*n+maxRounds), basis: make([]int, n),
	}
	total := 0.0
	for r, d := range demand {
		total += float64(d * prices[r])
	}
	for i, r := range dims {
		m.wanted[i] = demand[r] * prices[r] / total * (1 + float64(float64(i)*tieBreak))
		m.capacity.Set(i, i, 1)
		m.capacity.Set(i, n+i, -1)
		m.cost[i], m.basis[i] = 1, i
	}
	return m
}

// addRow adds the k-th row, unless it has no demanded resource.
func (m *linearProgram) addRow(k int) {
	if !slices.ContainsFunc(m.dims, func(r int) bool { return m.rows[k].capacity[r] > 0 }) {
		return
	}
	at := len(m.cost)
	m.capacity = m.capacity.Grow(0, 1).(*mat.Dense)
	for i, r := range m.dims {
		m.capacity.Set(i, at, m.rows[k].capacity[r]/m.rows[k].price*m.alonePrices[r])
	}
	m.cost, m.added = append(m.cost, 1), append(m.added, k)
}

// chooseBasis sets the initial basis: the row that is cheapest if nothing else is bought, and
// the surplus of all resources but the one that decides how much is needed. It is nearer to the
// result than each resource alone, which stays the basis if no row has every resource.
func (m *linearProgram) chooseBasis() {
	n, least := len(m.dims), math.Inf(1)
	for k := 2 * n; k < len(m.cost); k++ {
		most, scarce := 0.0, 0
		for i := range n {
			if need := m.wanted[i] / m.capacity.At(i, k); need > most {
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

// listBought returns the candidates in the basis.
func (m *linearProgram) listBought() (candidates []int) {
	for _, k := range m.basis {
		if at := k - 2*len(m.dims); at >= 0 {
			candidates = append(candidates, m.rows[m.added[at]].candidate)
		}
	}
	return candidates
}

// solvePrices computes the prices at which each bought candidate is worth its cost and surplus is
// worth nothing. It leaves prices unchanged and returns false if the solver fails.
func (m *linearProgram) solvePrices(prices []float64) (ok bool) {
	defer func() {
		if recover() != nil { // The solver panics on a basis that looks singular.
			ok = false
		}
	}()
	_, x, err := lp.Simplex(m.cost, m.capacity, m.wanted, 1e-9, m.basis)
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
		taken.SetRow(i, mat.Col(nil, k, m.capacity))
		costs.SetVec(i, m.cost[k])
	}
	var shares mat.VecDense
	if n != len(m.dims) || shares.SolveVec(taken, costs) != nil {
		return false
	}
	for i, r := range m.dims {
		prices[r] = m.alonePrices[r] * max(0, shares.AtVec(i))
	}
	return true
}

// mostOvervalued returns the row with the highest ratio of value to price, over the given dimensions.
func mostOvervalued(prices []float64, rows []programRow, dims []int) (at int, ratio float64) {
	for k := range rows {
		if got := rows[k].valueRatio(prices, dims); got > ratio {
			at, ratio = k, got
		}
	}
	return at, ratio
}

// valueRatio returns the ratio of a row's value to its price.
func (o *programRow) valueRatio(prices []float64, dims []int) float64 {
	sum := 0.0
	for _, r := range dims {
		sum += float64(prices[r] * o.capacity[r])
	}
	return sum / o.price
}

// scaleToFeasible divides prices by the ratio, so that no candidate is worth more than it costs,
// and returns the value of the demand.
func scaleToFeasible(prices, demand []float64, ratio float64) (bound float64) {
	for r := range prices {
		if ratio > 0 {
			prices[r] /= ratio
		}
		bound += float64(prices[r] * demand[r])
	}
	return bound
}
