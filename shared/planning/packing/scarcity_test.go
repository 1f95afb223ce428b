package packing_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// The prices of an hour of a node in the pools of newScarceProblem.
const cheap, near, dear, dearLarge = 0.1, 0.12, 0.5, 2.0

// newScarceProblem has a cheap pool with a limit of 16 cores, and two pools without limits, of which only the dear one has large
// nodes. It also returns the candidates for pods that may use every pool, and for pods that may not use the near one.
func newScarceProblem() (problem packing.Problem, free, tied packing.Set) {
	node := func(stage, pool int, size int64, price float64) packing.CandidateType {
		return packing.CandidateType{
			Stage: stage, Pool: pool, Allocatable: []int64{4000 * size, 8000 * size}, Capacity: []int64{4000 * size, 8000 * size},
			Prices: []packing.ZonePrice{{ZoneCapacityType: 0, Price: price}},
		}
	}
	unlimited := []int64{packing.Unlimited, packing.Unlimited}
	problem = packing.Problem{Dims: dims, Policy: packing.DefaultPolicy, Pools: []packing.Pool{
		{Quota: []int64{16000, packing.Unlimited}, Nodes: packing.Unlimited},
		{Quota: unlimited, Nodes: packing.Unlimited}, {Quota: unlimited, Nodes: packing.Unlimited},
	}}
	problem.Candidates = []packing.CandidateType{node(0, 0, 1, cheap), node(1, 1, 1, near), node(2, 2, 1, dear), node(2, 2, 4, dearLarge)}
	free, tied = packing.NewSet(4), packing.NewSet(4)
	for k := range 4 {
		free.Add(k)
		if k != 1 {
			tied.Add(k)
		}
	}
	return problem, free, tied
}

// TestLimitServesPodsWithDearAlternatives has a cheap pool whose limit holds half of the pods. Pods that only a dear
// pool takes otherwise get it, although the others are larger.
func TestLimitServesPodsWithDearAlternatives(t *testing.T) {
	for name, limit := range map[string][]int64{
		"cpu":    {16000, packing.Unlimited},
		"memory": {packing.Unlimited, 32000},
		"both":   {16000, 32000},
	} {
		t.Run(name, func(t *testing.T) {
			problem, free, tied := newScarceProblem()
			problem.Pools[0].Quota = limit
			p := packing.New(problem)
			p.Pack([]packing.Group{
				{Requests: []int64{2000, 4000}, Candidates: free, ZoneCapacityTypes: 1, Count: 8},
				{Requests: []int64{1000, 2000}, Candidates: tied, ZoneCapacityTypes: 1, Count: 16},
			})
			p.Finish()
			if got, want := p.Cost(), 4*cheap+4*near; got > want+1e-9 {
				t.Errorf("the plan costs %f, want %f", got, want)
			}
		})
	}
}

// TestLimitServesOthersIfLargePodsLeaveRoom adds large pods that only the dear pool's large nodes hold, each with room for six of
// the pods that may not use the near pool. The limit then serves the other pods.
func TestLimitServesOthersIfLargePodsLeaveRoom(t *testing.T) {
	problem, free, tied := newScarceProblem()
	p := packing.New(problem)
	p.Pack([]packing.Group{
		{Requests: []int64{2000, 4000}, Candidates: free, ZoneCapacityTypes: 1, Count: 8},
		{Requests: []int64{1000, 2000}, Candidates: tied, ZoneCapacityTypes: 1, Count: 16},
		{Requests: []int64{10000, 20000}, Candidates: tied, ZoneCapacityTypes: 1, Count: 5},
	})
	p.Finish()
	if got, want := p.Cost(), 4*cheap+5*dearLarge; got > want+1e-9 {
		t.Errorf("the plan costs %f, want %f", got, want)
	}
}
