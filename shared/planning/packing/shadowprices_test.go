package packing

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"
)

// TestShadowPrices checks prices of resources that can be computed by hand.
func TestShadowPrices(t *testing.T) {
	for _, tt := range []struct {
		name   string
		demand []float64
		rows   []programRow
		want   float64
	}{
		{"one resource", []float64{100}, []programRow{{[]float64{4}, 1, 0}, {[]float64{16}, 3, 1}}, 100.0 / 16 * 3},
		{"two types in balance", []float64{10, 10}, []programRow{{[]float64{4, 2}, 1, 0}, {[]float64{2, 4}, 1, 1}}, 10.0 / 3},
		{"an expensive equal type", []float64{10, 10}, []programRow{{[]float64{4, 4}, 1, 0}, {[]float64{4, 4}, 2, 1}}, 2.5},
		{"nothing demanded", []float64{0, 0}, []programRow{{[]float64{4, 4}, 1, 0}}, 0},
		{"no row has it", []float64{1, 1}, []programRow{{[]float64{4, 0}, 1, 0}}, 0},
		{"no rows", []float64{1}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, got, _ := computeShadowPrices(tt.demand, tt.rows, nil); math.Abs(got-tt.want) > 1e-9*max(1, tt.want) {
				t.Errorf("bound = %v, want %v", got, tt.want)
			}
		})
	}
}

// TestShadowPricesAreOptimal compares the value of the demand with the solution of the program over
// the prices that has every row from the start.
func TestShadowPricesAreOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "resources")
		amount := rapid.OneOf(rapid.Just(0.0), rapid.Just(4.0), rapid.Float64Range(0.01, 64))
		amounts := func(name string) []float64 { return rapid.SliceOfN(amount, n, n).Draw(t, name) }
		rows := make([]programRow, rapid.IntRange(1, 20).Draw(t, "rows"))
		for i := range rows {
			rows[i] = programRow{capacity: amounts("capacity"), price: rapid.Float64Range(0.01, 10).Draw(t, "price"), candidate: i}
		}
		demand, guess := amounts("demand"), rapid.SliceOf(rapid.IntRange(0, 25)).Draw(t, "guess")
		for r, d := range demand {
			if d > 0 && !slices.ContainsFunc(rows, func(o programRow) bool { return o.capacity[r] > 0 }) {
				t.Skip("no row has it")
			}
		}
		_, got, _ := computeShadowPrices(demand, rows, guess)
		if want := highest(demand, rows); math.Abs(got-want) > 1e-5*want {
			t.Fatalf("bound = %v, want %v", got, want)
		}
	})
}

// highest returns the highest value of the demand under prices that overvalue no row.
func highest(demand []float64, rows []programRow) float64 {
	m, n := len(rows), len(demand)
	a, b, c, basis := mat.NewDense(m, n+m, nil), make([]float64, m), make([]float64, n+m), make([]int, m)
	for k, row := range rows {
		a.SetRow(k, append(slices.Clone(row.capacity), make([]float64, m)...))
		a.Set(k, n+k, 1)
		b[k], basis[k] = row.price, n+k
	}
	for r, d := range demand {
		c[r] = -d
		if d == 0 { // The price does not matter; a resource that no row provides has none.
			for k := range rows {
				a.Set(k, r, 1)
			}
		}
	}
	least, _, err := lp.Simplex(c, a, b, 1e-9, basis)
	if err != nil {
		panic(err)
	}
	return -least
}

// TestShadowPricesBoundCosts buys random rows: their cost is never below the bound, and no row is
// worth more than it costs.
func TestShadowPricesBoundCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]programRow, rapid.IntRange(1, 8).Draw(t, "rows"))
		for i := range rows {
			rows[i] = programRow{
				capacity: rapid.SliceOfN(rapid.Float64Range(0, 64), 3, 3).Draw(t, "capacity"),
				price:    rapid.Float64Range(0.01, 10).Draw(t, "price"), candidate: i,
			}
		}
		counts := rapid.SliceOfN(rapid.IntRange(0, 5), len(rows), len(rows)).Draw(t, "bought")
		demand, cost := make([]float64, 3), 0.0
		for i, n := range counts {
			cost += float64(n) * rows[i].price
			for r := range demand {
				demand[r] += float64(n) * rows[i].capacity[r]
			}
		}
		guess := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "guess")
		prices, bound, _ := computeShadowPrices(demand, rows, guess)
		if bound > cost*(1+1e-9)+1e-9 {
			t.Fatalf("the bound is %v, above the cost %v", bound, cost)
		}
		if bound <= 0 && cost > 0 {
			t.Fatalf("the bound of a demand that costs %v is zero", cost)
		}
		if _, over := mostOvervalued(prices, rows, []int{0, 1, 2}); over > 1+1e-9 {
			t.Fatalf("a row is overvalued %v times", over)
		}
	})
}
