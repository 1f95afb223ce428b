package disruption

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// partlyFilledCluster returns a cluster of nodes that are three quarters full with pods of three sizes, and
// whose budget allows a tenth of them to be disrupted.
func partlyFilledCluster(seed uint64) planning.Snapshot {
	rng := rand.New(rand.NewPCG(seed, 0))
	nodes := make([]planning.Node, 0, 30)
	for i := range 30 {
		name := fmt.Sprintf("node-%02d", i)
		n := fixture.Node(name, []string{"t4g.large", "t4g.xlarge"}[rng.IntN(2)])
		room := 1900
		if n.Labels["node.kubernetes.io/instance-type"] == "t4g.xlarge" {
			room = 3900
		}
		for k := 0; room > 900; k++ {
			milli := 500 + 100*rng.IntN(8)
			if milli > room {
				break
			}
			room -= milli
			fixture.With(fixture.Pods(fmt.Sprintf("pod-%02d-%d", i, k), 1, fmt.Sprintf("%dm", milli), "500Mi"))(&n)
		}
		nodes = append(nodes, n)
	}
	return fixture.Snapshot(fixture.Pool(fixture.Budgets("10%")), nodes...)
}

// TestRandomSetsAreTried uses clusters in which removing the most wasteful nodes within the budget
// saves nothing, but removing other nodes does.
func TestRandomSetsAreTried(t *testing.T) {
	for _, seed := range []uint64{14, 27, 47, 48, 71, 74} {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := partlyFilledCluster(seed)
			stock := fixture.Stock(s)
			p := newEvaluation(s, stock, Options{})
			p.shadowPrices = consolidation.NewShadowPrices(&p.snapshot, p.stock)
			if best := bestSet(p.firstWithinBudgets(p.wastefulNodes()), p.tryRepaired); best != nil {
				t.Fatalf("the most wasteful nodes can be removed: %v", indexesOf(best.nodes))
			}
			found := Evaluate(s, stock, Options{}).Commands
			if len(found) == 0 || found[0].Method != MultiNode || found[0].SavedPerHour <= 0 {
				t.Fatalf("found %+v", found)
			}
			nodes := 0
			for _, c := range found {
				nodes += len(c.Nodes)
			}
			if nodes > 3 {
				t.Errorf("%d of 30 nodes are removed, the budget is a tenth", nodes)
			}
			if diff := cmp.Diff(found, Evaluate(s, stock, Options{}).Commands); diff != "" {
				t.Errorf("the same snapshot, and something else (-first +second):\n%s", diff)
			}
		})
	}
}

func TestRandomSetsKeepOrderAndBudgets(t *testing.T) {
	s := partlyFilledCluster(14)
	s.NodePools = append(s.NodePools, fixture.Pool(fixture.Budgets("2")))
	s.NodePools[1].Name = "other"
	for i := range s.Nodes[:15] {
		s.Nodes[i].NodePool = "other"
		s.Nodes[i].Labels["karpenter.sh/nodepool"] = "other"
	}
	p := newEvaluation(s, fixture.Stock(s), Options{})
	p.shadowPrices = consolidation.NewShadowPrices(&p.snapshot, p.stock)
	list := p.wastefulNodes()
	seen, full := map[string]bool{}, 0
	var falls randomSource
	for range 200 {
		set := p.drawSet(&falls, list, 4)
		if !p.fitsBudgets(set, MultiNode.budgetReason()) {
			t.Errorf("%v exceeds the budgets", indexesOf(set))
		}
		last := -1
		for _, c := range set {
			i := slices.Index(list, c)
			if i <= last {
				t.Errorf("%v is not in the order of the list, or has a node twice", indexesOf(set))
			}
			last = i
		}
		seen[fmt.Sprint(indexesOf(set))] = true
		if len(set) == 4 {
			full++
		}
	}
	if len(seen) < 150 || full < 150 {
		t.Errorf("of 200 sets %d are distinct, and %d have the largest size", len(seen), full)
	}
	if set := p.drawSet(&falls, list, len(list)); len(set) != 4 {
		t.Errorf("drew %d nodes, the budget is four", len(set))
	}
}
