package packing_test

import (
	"math"
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// TestMergedNodesRespectMaxShare packs pods on two nodes of 6 cores. One of 12 cores costs slightly less, but would carry more than a
// third of the plan.
func TestMergedNodesRespectMaxShare(t *testing.T) {
	for price, want := range map[float64]int{199: 2, 190: 1} {
		p := packing.New(zonedProblem(7, candidateOf(6000, 60000, 100), candidateOf(12000, 120000, price)))
		p.Pack([]packing.Group{{Requests: []int64{2500, 1000}, Candidates: setOf(2, 0, 1), ZoneCapacityTypes: 1, Count: 4}})
		if len(p.Bins()) != want || p.CountUnplaced(0) > 0 {
			t.Errorf("if 12 cores cost $%v and twice 6 cores $200: %d nodes, %d pods are not placed, want %d nodes", price, len(p.Bins()), p.CountUnplaced(0), want)
		}
	}
}

// TestNodesStayWithinSharedQuota packs a pod whose node uses up the quota that pools share. It must not become a larger one.
func TestNodesStayWithinSharedQuota(t *testing.T) {
	for quota, want := range map[int64]int{1: 1, 2: 2} {
		problem := zonedProblem(1000, candidateOf(1, 10, 1), candidateOf(2, 20, 2))
		problem.Pools[0].Shared = &packing.Pool{Quota: []int64{quota, packing.Unlimited}, Nodes: packing.Unlimited}
		p := packing.New(problem)
		p.Pack([]packing.Group{{Requests: []int64{1, 1}, Candidates: setOf(2, 0, 1), ZoneCapacityTypes: 1, Count: 1}})
		p.Finish()
		if got := p.BuyableTypes(0).Len(); got != want {
			t.Errorf("with a shared quota of %d, the node with 1 may be bought as %d types, want %d", quota, got, want)
		}
	}
}

// TestShadowPrices prices cores and memory by two types, of which the second holds the demand exactly.
func TestShadowPrices(t *testing.T) {
	demand, offers := []float64{4, 16}, []packing.PricedCapacity{{Capacity: []float64{2, 4, 1}, Price: 1}, {Capacity: []float64{2, 8, 1}, Price: 1.2}}
	prices := packing.ShadowPrices(demand, offers)
	if value := prices[0]*demand[0] + prices[1]*demand[1]; math.Abs(value-2.4) > 1e-6 {
		t.Errorf("the prices %v give the demand a value of $%v, want the price of two nodes of the second type", prices, value)
	}
	for _, o := range offers {
		if value := prices[0]*o.Capacity[0] + prices[1]*o.Capacity[1]; value > o.Price+1e-6 {
			t.Errorf("the prices %v give %+v a value of $%v", prices, o, value)
		}
	}
}
