package packing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// unlimitedPool is a pool without limits.
func unlimitedPool() packing.Pool {
	return packing.Pool{Quota: []int64{packing.Unlimited, packing.Unlimited}, Nodes: packing.Unlimited}
}

// setOf returns the set of some indexes below n.
func setOf(n int, indexes ...int) packing.Set {
	out := packing.NewSet(n)
	for _, i := range indexes {
		out.Add(i)
	}
	return out
}

// anywhere is a rule that limits nothing, for affinity.
var anywhere = packing.Rule{WithMember: 1 << 30, WithOther: 1 << 30, Soft: true}

// TestAffinityFollowsPlannedPods packs pods without affinity on new nodes, and in the next round one with affinity to them, for
// which these nodes have no room. It must not start another node.
func TestAffinityFollowsPlannedPods(t *testing.T) {
	problem := packing.Problem{Dims: dims, Policy: packing.DefaultPolicy, Pools: []packing.Pool{unlimitedPool()}, Rules: []packing.Rule{anywhere}}
	problem.Candidates = []packing.CandidateType{{Allocatable: []int64{4000, 8000}, Capacity: []int64{4000, 8000}, Prices: []packing.ZonePrice{{Price: 1}}}}
	member := []packing.RuleRole{{Member: true}}
	p := packing.New(problem)
	var pods []packing.Group
	for _, memory := range []int64{1900, 1950, 2000} {
		pods = append(pods, packing.Group{Requests: []int64{1000, memory}, Candidates: setOf(1, 0), ZoneCapacityTypes: 1, Roles: member, Count: 100})
	}
	p.Pack(pods)
	late := p.Pack([]packing.Group{{Requests: []int64{1000, 2000}, Candidates: setOf(1, 0), ZoneCapacityTypes: 1, Roles: member, AffinityRules: []int32{0}, Count: 1}})
	if len(p.Bins()) != 75 || p.CountUnplaced(late) != 1 {
		t.Errorf("%d nodes and %d unplaced pods, want 75 nodes, on which the pod with affinity has no room", len(p.Bins()), p.CountUnplaced(late))
	}
}

// TestAffinityStartsWhereMostFit packs pods that must share a node on existing nodes.
func TestAffinityStartsWhereMostFit(t *testing.T) {
	for _, tt := range []struct {
		name string
		free []int64
		want int
	}{{"the first node holds more", []int64{2000, 1000}, 0}, {"the last node holds more", []int64{1000, 2000}, 1}, {"both hold as many", []int64{2000, 2000}, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			problem := packing.Problem{Dims: dims, Policy: packing.DefaultPolicy, Pools: []packing.Pool{unlimitedPool()}, Rules: []packing.Rule{anywhere}}
			for _, free := range tt.free {
				problem.Nodes = append(problem.Nodes, packing.Node{Free: []int64{free, 8000}})
			}
			p := packing.New(problem)
			p.Pack([]packing.Group{{Requests: []int64{1000, 1000}, Nodes: setOf(2, 0, 1), Roles: []packing.RuleRole{{Member: true}}, AffinityRules: []int32{0}, Count: 3}})
			want := make([][]packing.GroupCount, 2)
			want[tt.want] = []packing.GroupCount{{Group: 0, Count: 2}}
			if diff := cmp.Diff(want, [][]packing.GroupCount{p.PodsOnNode(0), p.PodsOnNode(1)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAffinityStartsWithPodThatFits packs a pod with affinity to pods of two sizes. Only the smaller one fits on a node with it.
func TestAffinityStartsWithPodThatFits(t *testing.T) {
	problem := zonedProblem(1000, candidateOf(4000, 8000, 1))
	problem.Rules = []packing.Rule{anywhere}
	var groups []packing.Group
	for _, cpu := range []int64{3000, 500} {
		groups = append(groups, packing.Group{Requests: []int64{cpu, 100}, Candidates: setOf(1, 0), ZoneCapacityTypes: 1, Roles: []packing.RuleRole{{Member: true}}, Count: 1})
	}
	p := packing.New(problem)
	p.Pack(append(groups, packing.Group{Requests: []int64{3000, 100}, Candidates: setOf(1, 0), ZoneCapacityTypes: 1, AffinityRules: []int32{0}, Count: 1}))
	if len(p.Bins()) != 2 || p.CountUnplaced(0)+p.CountUnplaced(1)+p.CountUnplaced(2) > 0 {
		t.Errorf("%d nodes, and %d pods with affinity are not placed, want two nodes with all pods", len(p.Bins()), p.CountUnplaced(2))
	}
}

// TestRulesOfOnePod places two pods that must not share a node.
func TestRulesOfOnePod(t *testing.T) {
	problem := zonedProblem(1000, candidateOf(4000, 8000, 1))
	problem.Rules = []packing.Rule{{WithMember: 1}}
	pod := packing.Group{Requests: []int64{1000, 1000}, Candidates: setOf(1, 0), ZoneCapacityTypes: 1, Roles: []packing.RuleRole{{Owner: true, Member: true}}, Count: 1}
	p := packing.New(problem)
	if _, ok := p.PlaceOnNew(pod); !ok {
		t.Fatal("the first pod got no node")
	}
	if larger := p.ListLarger(0, &pod).Len(); larger > 0 {
		t.Errorf("%d candidates could hold both pods", larger)
	}
	if _, ok := p.PlaceInBin(0, pod); ok {
		t.Error("both pods are on one node")
	}
}

// TestAffinityStartsWithoutUnplacedPods packs two pods that need a node each in a NodePool that may only have one. A pod of another
// NodePool with affinity to pods like the unplaced one and like itself may be the first of them.
func TestAffinityStartsWithoutUnplacedPods(t *testing.T) {
	for _, cpu := range [][]int64{{2000, 3000}, {3000, 2000}} {
		problem := zonedProblem(1000, candidateOf(4000, 8000, 1), candidateOf(4000, 8000, 1))
		problem.Candidates[0].Prices[1].Price = 0.5
		problem.Pools[0].Nodes, problem.Candidates[1].Pool, problem.Rules = 1, 1, []packing.Rule{anywhere, anywhere}
		problem.Pools = append(problem.Pools, unlimitedPool())
		var groups []packing.Group
		for i := range int32(2) {
			groups = append(groups, packing.Group{Requests: []int64{cpu[i], 100}, Candidates: setOf(2, 0), ZoneCapacityTypes: 1 << i, Roles: []packing.RuleRole{{Rule: i, Member: true}}, Count: 1})
		}
		p := packing.New(problem)
		p.Pack(groups)
		left := int32(p.CountUnplaced(1))
		late := p.Pack([]packing.Group{{Requests: []int64{1000, 100}, Candidates: setOf(2, 1), ZoneCapacityTypes: 1, Roles: []packing.RuleRole{{Rule: left, Member: true}}, AffinityRules: []int32{left}, Count: 1}})
		if p.CountUnplaced(0)+p.CountUnplaced(1) != 1 || p.CountUnplaced(late) > 0 {
			t.Errorf("%d and %d pods of the first NodePool are not placed, and %d of the second, want one of the first", p.CountUnplaced(0), p.CountUnplaced(1), p.CountUnplaced(late))
		}
	}
}
