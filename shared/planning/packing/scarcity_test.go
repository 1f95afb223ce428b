package packing_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// TestLimitServesPodsWithDearAlternatives has a cheap pool whose limit holds half of the pods. Pods that only a dear
// pool takes otherwise get it, although the others are larger.
func TestLimitServesPodsWithDearAlternatives(t *testing.T) {
	node := func(stage, pool int, price float64) packing.CandidateType {
		return packing.CandidateType{
			Stage: stage, Pool: pool, Allocatable: []int64{4000, 8000}, Capacity: []int64{4000, 8000},
			Prices: []packing.ZonePrice{{ZoneCapacityType: 0, Price: price}},
		}
	}
	unlimited := []int64{packing.Unlimited, packing.Unlimited}
	problem := packing.Problem{Dims: dims, Policy: packing.DefaultPolicy, Pools: []packing.Pool{
		{Quota: []int64{16000, packing.Unlimited}, Nodes: packing.Unlimited},
		{Quota: unlimited, Nodes: packing.Unlimited}, {Quota: unlimited, Nodes: packing.Unlimited},
	}}
	const cheap, near, dear = 0.1, 0.12, 0.5
	problem.Candidates = []packing.CandidateType{node(0, 0, cheap), node(1, 1, near), node(2, 2, dear)}
	tied, free := packing.NewSet(3), packing.NewSet(3)
	for _, k := range []int{0, 2} {
		tied.Add(k)
	}
	for k := range 3 {
		free.Add(k)
	}
	p := packing.New(problem)
	p.Pack([]packing.Group{
		{Requests: []int64{2000, 4000}, Candidates: free, ZoneCapacityTypes: 1, Count: 8},
		{Requests: []int64{1000, 2000}, Candidates: tied, ZoneCapacityTypes: 1, Count: 16},
	})
	p.Finish()
	if got, want := p.Cost(), 4*cheap+4*near; got > want+1e-9 {
		t.Errorf("the plan costs %f, want %f", got, want)
	}
}
