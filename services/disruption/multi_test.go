package disruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// passOver returns an evaluation of this many nodes of one type, each with a pod that requests a
// core.
func passOver(count int, edits ...func(*node)) *evaluation {
	var nodes []node
	for i := range count {
		nodes = append(nodes, fixture.Node(fmt.Sprint("n", i), "t4g.large", edits...))
	}
	s := fixture.Snapshot(fixture.Pool(fixture.Budgets("100%")), nodes...)
	return newEvaluation(s, fixture.Stock(s), Options{})
}

// all returns the evaluation's candidates.
func (p *evaluation) all() []*candidate.Candidate {
	var out []*candidate.Candidate
	for i := range p.candidates {
		out = append(out, &p.candidates[i])
	}
	return out
}

// Three or more nodes are not tried if they waste less than several replacements would have to
// save, even if one node could replace them, as here.
func TestSetsWithLittleWasteAreNotTried(t *testing.T) {
	for _, tt := range []struct {
		nodes    int
		waste    float64
		hopeless bool
	}{
		{2, 0.001, false}, {2, -0.5, false},
		{3, minSavedPart - 0.001, true}, {3, minSavedPart + 0.001, false}, {3, -0.5, true},
		{maxSetSize, minSavedPart - 0.001, true}, {maxSetSize, minSavedPart + 0.001, false},
	} {
		p := passOver(tt.nodes, pods("p", 1, "1"))
		p.shadowPrices = consolidation.ShadowPrices{Core: p.candidates[0].Price * (1 - tt.waste)}
		if got := p.isHopeless(p.all()); got != tt.hopeless {
			t.Errorf("%d nodes that waste %v of their price: hopeless %v", tt.nodes, tt.waste, got)
		}
		tried := p.tryRepaired(p.all(), func(*attempt) bool { return true })
		if looked := p.simulation != nil; looked == tt.hopeless {
			t.Errorf("%d nodes that waste %v of their price: simulated %v (%+v)", tt.nodes, tt.waste, looked, tried)
		}
	}
}

// Attempts without pods are not simulated.
func TestPlacementWithoutPods(t *testing.T) {
	p := passOver(3)
	if a := p.tryRepaired(p.all(), func(*attempt) bool { return true }); a == nil || a.SavedPerHour <= 0 {
		t.Errorf("for three nodes without pods got %+v", a)
	}
	if p.simulation != nil {
		t.Error("the attempt was simulated")
	}
}

// Fewer nodes of a list are tried until the result is worse; this applies only after a first set
// was found.
func TestSetIsReducedUntilItIsWorse(t *testing.T) {
	list := passOver(20).all()
	for _, tt := range []struct {
		name string
		// saved is the saving of a set of this many nodes, each with one moved pod; sizes without
		// an entry find nothing.
		saved       map[int]float64
		tried, want []int
	}{
		{"no set is good", nil, []int{20, 16, 12, 9, 7, 5, 4, 3, 2}, nil},
		{"a smaller set saves less per pod", map[int]float64{20: 20, 16: 15}, []int{20, 16}, []int{20}},
		{"smaller sets save more per pod", map[int]float64{20: 20, 16: 19, 12: 18, 9: 14}, []int{20, 16, 12, 9}, []int{12}},
		{"the first good set is small, and the next one is worse", map[int]float64{12: 12, 7: 11}, []int{20, 16, 12, 9}, []int{12}},
	} {
		var tried []int
		best := bestSet(list, func(nodes []*candidate.Candidate, better func(*attempt) bool) *attempt {
			tried = append(tried, len(nodes))
			a := &attempt{Command: Command{SavedPerHour: tt.saved[len(nodes)], PodsMoved: len(nodes)}, nodes: nodes}
			if a.SavedPerHour == 0 || !better(a) {
				return nil
			}
			return a
		})
		var found []int
		if best != nil {
			found = append(found, len(best.nodes))
		}
		if diff := cmp.Diff(tt.tried, tried); diff != "" || !slices.Equal(found, tt.want) {
			t.Errorf("%s: found %v, want %v; tried (-want +got):\n%s", tt.name, found, tt.want, diff)
		}
	}
}

// Sets are drawn up to the limit, and only a few more after the first good one.
func TestDrawingStopsSoonAfterGoodSet(t *testing.T) {
	for _, tt := range []struct{ good, least, most int }{
		// A set that is drawn twice is tried once, but counts as two draws.
		{0, maxDraws / 2, maxDraws}, {1, drawsAfterFirst / 2, 1 + drawsAfterFirst}, {20, 20, 20 + drawsAfterFirst},
	} {
		p := passOver(30, pods("p", 1, "100m"))
		p.shadowPrices = consolidation.NewShadowPrices(&p.snapshot, p.stock)
		tried, offered := 0, 0
		best := p.drawSets(func(nodes []*candidate.Candidate, better func(*attempt) bool) *attempt {
			if tried++; tt.good == 0 || tried < tt.good {
				return nil
			}
			offered++
			a := &attempt{Command: Command{SavedPerHour: float64(offered), PodsMoved: 1}, nodes: nodes}
			if !better(a) {
				t.Errorf("good set %d saves more than those before it, but is not better", offered)
			}
			return a
		})
		if tried < tt.least || tried > tt.most || (best != nil) != (tt.good > 0) || best != nil && best.SavedPerHour != float64(offered) {
			t.Errorf("with good set %d, %d sets are tried, and the best is %+v", tt.good, tried, best)
		}
	}
}

// waitingForApproval makes a NodePool one whose deletion waits for approval.
func waitingForApproval(p *karpenter.NodePool) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: fixture.Taken.Add(-time.Hour)}, []string{"joist.sh/gate"}
}

// Lifecycle allows no disruption of nodes whose NodePool is being deleted. A set with such a node would be rejected each time, and the
// nodes of other NodePools in it would stay.
func TestSetsLeaveOutDeletedNodePools(t *testing.T) {
	old := fixture.Pool(fixture.Budgets("100%"), waitingForApproval)
	old.Name = "old"
	ofOld := func(n *node) { n.NodePool, n.Labels[karpenter.NodePoolLabelKey] = old.Name, old.Name }
	n := fixture.Node
	s := fixture.Snapshot(fixture.Pool(fixture.Budgets("100%")), n("a", "t4g.xlarge", with(1)), n("x", "t4g.xlarge", with(1), ofOld),
		n("e", "t4g.large", ofOld), n("d", "t4g.medium", with(2), drift(time.Hour), ofOld))
	s.NodePools = append(s.NodePools, old)
	found := Evaluate(s, fixture.Stock(s), Options{})
	if len(found.Commands) == 0 {
		t.Error("node a is not consolidated")
	}
	for _, c := range found.Commands {
		if len(c.Nodes) != 1 || c.Nodes[0] != 0 {
			t.Errorf("got %s", describeFindings(s, c))
		}
	}
	for _, k := range found.Kept {
		if k.Rule != candidate.RulePoolDeleting {
			t.Errorf("node %s is kept by %s, want %s", k.Node, k.Rule, candidate.RulePoolDeleting)
		}
	}
}
