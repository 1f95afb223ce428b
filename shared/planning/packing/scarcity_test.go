package packing_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// The prices of an hour of a node in the pools of newScarceProblem.
const cheap, near, dear, dearLarge = 0.1, 0.12, 0.5, 2.0

// newCandidate returns an instance type of a pool whose nodes have the cpu and memory.
func newCandidate(stage, pool int, cpu, memory int64, price float64) packing.CandidateType {
	return packing.CandidateType{
		Stage: stage, Pool: pool, Allocatable: []int64{cpu, memory}, Capacity: []int64{cpu, memory},
		Prices: []packing.ZonePrice{{ZoneCapacityType: 0, Price: price}},
	}
}

// newScarceProblem has a cheap pool with a limit of 16 cores, and two pools without limits, of which only the dear one has large
// nodes. It also returns the candidates for pods that may use every pool, and for pods that may not use the near one.
func newScarceProblem() (problem packing.Problem, free, tied packing.Set) {
	unlimited := []int64{packing.Unlimited, packing.Unlimited}
	problem = packing.Problem{Dims: dims, Policy: packing.DefaultPolicy, Pools: []packing.Pool{
		{Quota: []int64{16000, packing.Unlimited}, Nodes: packing.Unlimited},
		{Quota: unlimited, Nodes: packing.Unlimited}, {Quota: unlimited, Nodes: packing.Unlimited},
	}}
	problem.Candidates = []packing.CandidateType{
		newCandidate(0, 0, 4000, 8000, cheap), newCandidate(1, 1, 4000, 8000, near),
		newCandidate(2, 2, 4000, 8000, dear), newCandidate(2, 2, 16000, 32000, dearLarge),
	}
	return problem, newSetOf(0, 1, 2, 3), newSetOf(0, 2, 3)
}

func newSetOf(candidates ...int) packing.Set {
	set := packing.NewSet(5)
	for _, k := range candidates {
		set.Add(k)
	}
	return set
}

// TestLimitServesPodsWithDearAlternatives has a cheap pool whose limit holds half of the pods or less. Pods that only a
// dear pool takes otherwise get it, although the others are larger.
func TestLimitServesPodsWithDearAlternatives(t *testing.T) {
	for name, c := range map[string]struct {
		limit  []int64
		others int
	}{
		"cpu":         {[]int64{16000, packing.Unlimited}, 8},
		"memory":      {[]int64{packing.Unlimited, 32000}, 8},
		"both":        {[]int64{16000, 32000}, 8},
		"many others": {[]int64{16000, 32000}, 80},
	} {
		t.Run(name, func(t *testing.T) {
			problem, free, tied := newScarceProblem()
			problem.Pools[0].Quota = c.limit
			p := packing.New(problem)
			p.Pack([]packing.Group{
				{Requests: []int64{2000, 4000}, Candidates: free, ZoneCapacityTypes: 1, Count: c.others},
				{Requests: []int64{1000, 2000}, Candidates: tied, ZoneCapacityTypes: 1, Count: 16},
			})
			p.Finish()
			if got, want := p.Cost(), 4*cheap+float64(c.others/2)*near; got > want+1e-9 {
				t.Errorf("the plan costs %f, want %f", got, want)
			}
		})
	}
}

// TestLimitServesPodsThatSaveMostOfScarcestResource has a cheap pool that lacks more memory than cpu. It serves the pods that
// need little memory, although the others need less cpu.
func TestLimitServesPodsThatSaveMostOfScarcestResource(t *testing.T) {
	problem, _, _ := newScarceProblem()
	problem.Pools[0].Quota = []int64{20000, 32000}
	problem.Candidates = []packing.CandidateType{
		newCandidate(0, 0, 4000, 4000, cheap), newCandidate(0, 0, 4000, 8000, cheap),
		newCandidate(1, 1, 4000, 4000, dear), newCandidate(1, 2, 4000, 8000, dear),
	}
	p := packing.New(problem)
	p.Pack([]packing.Group{
		{Requests: []int64{2000, 1000}, Candidates: newSetOf(0, 1, 2), ZoneCapacityTypes: 1, Count: 8},
		{Requests: []int64{500, 4000}, Candidates: newSetOf(0, 1, 3), ZoneCapacityTypes: 1, Count: 16},
	})
	p.Finish()
	if got, want := p.Cost(), 5*cheap+7*dear; got > want+1e-9 {
		t.Errorf("the plan costs %f, want %f", got, want)
	}
}

// TestLimitCountsAllTypesOfNextPool has pods whose next NodePool has a dear type, and one that costs little more than the cheap
// pool. The limit serves the other pods, which save more.
func TestLimitCountsAllTypesOfNextPool(t *testing.T) {
	const other = 0.2
	problem, _, _ := newScarceProblem()
	problem.Candidates = []packing.CandidateType{
		newCandidate(0, 0, 4000, 8000, cheap),
		newCandidate(1, 1, 4000, 8000, dear), newCandidate(1, 1, 4000, 8000, near),
		newCandidate(1, 2, 4000, 8000, other),
	}
	p := packing.New(problem)
	p.Pack([]packing.Group{
		{Requests: []int64{2000, 4000}, Candidates: newSetOf(0, 1, 2), ZoneCapacityTypes: 1, Count: 8},
		{Requests: []int64{1000, 2000}, Candidates: newSetOf(0, 3), ZoneCapacityTypes: 1, Count: 16},
	})
	p.Finish()
	if got, want := p.Cost(), 4*cheap+4*near; got > want+1e-9 {
		t.Errorf("the plan costs %f, want %f", got, want)
	}
}

// TestLimitServesOthersIfLargePodsLeaveRoom adds large pods whose nodes each have room for six of the pods that may not use the
// near pool, if these may use their pool. The limit then serves the other pods.
func TestLimitServesOthersIfLargePodsLeaveRoom(t *testing.T) {
	problem, free, tied := newScarceProblem()
	problem.Pools = append(problem.Pools, problem.Pools[2])
	problem.Candidates = append(problem.Candidates, newCandidate(2, 3, 16000, 32000, dearLarge))
	for name, c := range map[string]struct {
		large packing.Set
		want  float64
	}{
		"their pool takes the others":        {tied, 4*cheap + 5*dearLarge},
		"a pool that the others may not use": {newSetOf(4), 4*cheap + 4*near + 5*dearLarge},
	} {
		t.Run(name, func(t *testing.T) {
			p := packing.New(problem)
			p.Pack([]packing.Group{
				{Requests: []int64{2000, 4000}, Candidates: free, ZoneCapacityTypes: 1, Count: 8},
				{Requests: []int64{1000, 2000}, Candidates: tied, ZoneCapacityTypes: 1, Count: 16},
				{Requests: []int64{10000, 20000}, Candidates: c.large, ZoneCapacityTypes: 1, Count: 5},
			})
			p.Finish()
			if got := p.Cost(); got > c.want+1e-9 {
				t.Errorf("the plan costs %f, want %f", got, c.want)
			}
		})
	}
}
