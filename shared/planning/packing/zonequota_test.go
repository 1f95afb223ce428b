package packing_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// zonedProblem is a problem with candidates in two zones, of which the first has some addresses and the second is unlimited.
func zonedProblem(addresses int64, candidates ...packing.CandidateType) packing.Problem {
	pool := unlimitedPool()
	pool.ZoneQuotas = []int{1, 0}
	return packing.Problem{
		Dims: dims, Policy: packing.DefaultPolicy, Pools: []packing.Pool{pool}, Candidates: candidates,
		ZoneQuotas: []packing.ZoneQuota{{Addresses: addresses, Nodes: packing.Unlimited}},
	}
}

// candidateOf is a candidate that is sold in both zones.
func candidateOf(cpu, memory int64, price float64) packing.CandidateType {
	return packing.CandidateType{Allocatable: []int64{cpu, memory}, Capacity: []int64{cpu, memory}, Prices: []packing.ZonePrice{{ZoneCapacityType: 0, Price: price}, {ZoneCapacityType: 1, Price: price}}}
}

// TestLaterRoundsCountAddresses packs a pod for the first zone while addresses are plentiful, and then another one.
func TestLaterRoundsCountAddresses(t *testing.T) {
	for _, tt := range []struct {
		addresses int64
		unplaced  int
	}{{3, 1}, {4, 0}} {
		p := packing.New(zonedProblem(tt.addresses, candidateOf(1000, 1000, 1)))
		pods := []packing.Group{{Requests: []int64{900, 900}, Candidates: setOf(1, 0), ZoneCapacityTypes: 1, Count: 1}}
		p.Pack(pods)
		if late := p.Pack(pods); p.CountUnplaced(late) != tt.unplaced {
			t.Errorf("%d addresses for two nodes with a pod each: %d pods of the second round are not placed, want %d", tt.addresses, p.CountUnplaced(late), tt.unplaced)
		}
	}
}

// TestAffinityPodsCountAddresses packs a pod that may be in either zone, and one for the first zone with affinity to it.
func TestAffinityPodsCountAddresses(t *testing.T) {
	for _, tt := range []struct {
		addresses int64
		unplaced  int
	}{{2, 1}, {3, 0}} {
		problem := zonedProblem(tt.addresses, candidateOf(1000, 1000, 1))
		problem.Rules = []packing.Rule{anywhere}
		p := packing.New(problem)
		p.Pack([]packing.Group{
			{Requests: []int64{400, 400}, Candidates: setOf(1, 0), ZoneCapacityTypes: 3, Roles: []packing.RuleRole{{Member: true}}, Count: 1},
			{Requests: []int64{400, 400}, Candidates: setOf(1, 0), ZoneCapacityTypes: 1, AffinityRules: []int32{0}, Count: 1},
		})
		if p.CountUnplaced(0)+p.CountUnplaced(1) != tt.unplaced {
			t.Errorf("%d addresses for a node with two pods: %d and %d pods are not placed, want %d", tt.addresses, p.CountUnplaced(0), p.CountUnplaced(1), tt.unplaced)
		}
	}
}

// TestMergedNodesCountAddresses packs four pods for the first zone, whose five addresses are enough for two nodes with three pods. One
// node for these pods is cheaper than two. The address that it saves is not enough for another node.
func TestMergedNodesCountAddresses(t *testing.T) {
	p := packing.New(zonedProblem(5, candidateOf(10000, 60000, 7500), candidateOf(6000, 48000, 4125)))
	p.Pack([]packing.Group{{Requests: []int64{0, 20000}, Candidates: setOf(2, 0, 1), ZoneCapacityTypes: 1, Count: 4}})
	if len(p.Bins()) != 1 || p.Cost() != 7500 || p.CountUnplaced(0) != 1 {
		t.Errorf("%d nodes for $%v, and %d unplaced pods, want one node for $7500, and one unplaced pod", len(p.Bins()), p.Cost(), p.CountUnplaced(0))
	}
}
