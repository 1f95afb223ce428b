package empty

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

var taken = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// pool consolidates what is idle for a minute, and has the budgets.
func pool(budgets ...string) karpenter.NodePool {
	p := karpenter.NodePool{}
	p.Name = "default"
	p.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(time.Minute)
	p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmpty
	for _, nodes := range budgets {
		p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, karpenter.Budget{Nodes: nodes})
	}
	return p
}

// idleNode is a node without pods, idle for an hour.
func idleNode(name string) scheduling.Node {
	return scheduling.Node{
		Name: name, Claim: name, ClaimUID: "uid-" + name, NodePool: "default", Ready: true,
		Launched: true, Registered: true, Initialized: true, InitializedAt: taken.Add(-time.Hour),
	}
}

func snapshot(p karpenter.NodePool, nodes ...scheduling.Node) scheduling.Snapshot {
	return scheduling.Snapshot{Taken: taken, Cluster: "web", UID: "u", NodePools: []karpenter.NodePool{p}, Nodes: nodes}
}

func TestObjection(t *testing.T) {
	type node = scheduling.Node
	for _, tt := range []struct {
		name   string
		change func(n *node, p *karpenter.NodePool)
		want   string
	}{
		{"idle", func(*node, *karpenter.NodePool) {}, ""},
		{"idle since a pod left", func(n *node, _ *karpenter.NodePool) { n.LastPodEvent = taken.Add(-time.Minute) }, ""},
		{"a nomination that has passed", func(n *node, _ *karpenter.NodePool) { n.Nominated = taken }, ""},
		{"B011 any policy", func(_ *node, p *karpenter.NodePool) {
			p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized
		}, ""},
		{"B148 a pod left just now", func(n *node, _ *karpenter.NodePool) { n.LastPodEvent = taken.Add(-time.Minute + 1) }, "it is idle for less than 1m0s"},
		{"B010 initialized just now", func(n *node, _ *karpenter.NodePool) { n.InitializedAt = taken }, "it is idle for less than 1m0s"},
		{"B010 never", func(_ *node, p *karpenter.NodePool) {
			p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{}
		}, "its NodePool never consolidates"},
		{"a fixed number", func(_ *node, p *karpenter.NodePool) { p.Spec.Replicas = new(int64) }, "its NodePool has a fixed number of nodes"},
		{"another pool", func(n *node, _ *karpenter.NodePool) { n.NodePool = "gone" }, `NodePool "gone" does not exist`},
		{"not managed", func(n *node, _ *karpenter.NodePool) { n.Claim = "" }, "Joist does not manage it"},
		{"not initialized", func(n *node, _ *karpenter.NodePool) { n.Initialized = false }, "it is not initialized"},
		{"going", func(n *node, _ *karpenter.NodePool) { n.Going = true }, "it is going already"},
		{"nominated", func(n *node, _ *karpenter.NodePool) { n.Nominated = taken.Add(1) }, "pods are expected on it"},
		{"do-not-disrupt", func(n *node, _ *karpenter.NodePool) { n.DoNotDisrupt = true }, "it carries karpenter.sh/do-not-disrupt"},
		{"pods", func(n *node, _ *karpenter.NodePool) { n.Pods = []scheduling.PodClass{{}} }, "it has pods"},
		{"no times", func(n *node, _ *karpenter.NodePool) { n.InitializedAt = time.Time{} }, "it is not known since when it is idle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, p := idleNode("a"), pool()
			tt.change(&n, &p)
			s := snapshot(p, n)
			pools := map[string]*karpenter.NodePool{"default": &p}
			if got := Objection(n, pools[n.NodePool], taken); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if found := len(Find(s)); (found == 1) != (tt.want == "") {
				t.Fatalf("found %d candidates", found)
			}
		})
	}
}

func TestProposalIsTheIdlenessAndNotTheSnapshot(t *testing.T) {
	first := snapshot(pool(), idleNode("a"))
	id := Find(first)[0].Proposal
	later := first
	later.Taken = taken.Add(time.Hour)
	if got := Find(later)[0].Proposal; got != id {
		t.Fatal("the same idleness is another proposal in a later snapshot")
	}
	visited := idleNode("a")
	visited.LastPodEvent = taken.Add(-10 * time.Minute)
	reborn := idleNode("a")
	reborn.ClaimUID = "uid-2"
	other := first
	other.UID = "v"
	other.Nodes = first.Nodes
	for name, s := range map[string]scheduling.Snapshot{
		"a pod came and went": snapshot(pool(), visited), "another claim of the name": snapshot(pool(), reborn), "another cluster": other,
	} {
		if Find(s)[0].Proposal == id {
			t.Errorf("%s: the proposal is the same", name)
		}
	}
}

// carrying is an idle node that carries its own proposal, made so long ago.
func carrying(name string, ago time.Duration) scheduling.Node {
	n := idleNode(name)
	n.Proposal = &scheduling.Proposal{ID: Find(snapshot(pool(), n))[0].Proposal, Reason: "Empty", Proposed: taken.Add(-ago)}
	return n
}

func with(n scheduling.Node, change func(*scheduling.Node)) scheduling.Node {
	change(&n)
	return n
}

func TestDecide(t *testing.T) {
	going := func(n *scheduling.Node) { n.Going = true }
	unready := func(n *scheduling.Node) { n.Ready = false }
	fresh := func(n *scheduling.Node) { n.Initialized = false }
	busy := func(n *scheduling.Node) { n.Pods = []scheduling.PodClass{{}} }
	old := func(n *scheduling.Node) {
		n.Proposal = &scheduling.Proposal{ID: "old", Reason: "Empty", Proposed: taken}
	}
	static := pool()
	static.Spec.Replicas = new(int64)
	for _, tt := range []struct {
		name  string
		pool  karpenter.NodePool
		nodes []scheduling.Node
		want  []string
	}{
		{"nothing", pool(), nil, nil},
		{"proposed", pool(), []scheduling.Node{idleNode("a"), idleNode("b")}, []string{"proposed a", "proposed b"}},
		{"B152 too young to be confirmed", pool(), []scheduling.Node{carrying("a", 15*time.Second-1)}, nil},
		{"B152 confirmed", pool(), []scheduling.Node{carrying("a", 15*time.Second)}, []string{"confirmed a"}},
		{"dropped, for a pod came", pool(), []scheduling.Node{with(carrying("a", time.Minute), busy)}, []string{"dropped a"}},
		{"dropped, for the pool is static now", static, []scheduling.Node{carrying("a", time.Minute)}, []string{"dropped a"}},
		{"proposed anew, for a pod came and went", pool(), []scheduling.Node{with(idleNode("a"), old)}, []string{"proposed a"}},
		{"a claim that is being deleted", pool(), []scheduling.Node{with(carrying("a", time.Minute), going)}, nil},
		{"one of ten", pool("10%"), []scheduling.Node{idleNode("a"), idleNode("b")}, []string{"proposed a"}},
		{"what was proposed keeps its place", pool("1"), []scheduling.Node{idleNode("a"), carrying("b", time.Minute)}, []string{"confirmed b"}},
		{"the older proposal first", pool("1"), []scheduling.Node{carrying("a", time.Minute), carrying("b", time.Hour)}, []string{"confirmed b", "dropped a"}},
		{"B160 less those that go", pool("2"), []scheduling.Node{idleNode("a"), idleNode("b"), with(idleNode("c"), going)}, []string{"proposed a"}},
		{"B160 less those that are not ready", pool("1"), []scheduling.Node{idleNode("a"), with(idleNode("b"), unready)}, nil},
		{"B160 a new node is no part of the whole", pool("34%"), []scheduling.Node{idleNode("a"), idleNode("b"), with(idleNode("c"), fresh), with(idleNode("d"), fresh)},
			[]string{"proposed a"}},
		{"the budget closes", pool("0"), []scheduling.Node{carrying("a", time.Minute)}, []string{"dropped a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := snapshot(tt.pool, tt.nodes...)
			decisions, err := Decide(s, Find(s))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range decisions {
				got = append(got, fmt.Sprint(d.Phase, " ", d.Claim))
				if d.Proposal == "" || d.Reason != "Empty" {
					t.Errorf("decision %+v", d)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideTakesTheDearestFirst(t *testing.T) {
	s := snapshot(pool("1"), idleNode("a"), idleNode("b"))
	candidates := Find(s)
	candidates[1].SavedPerHr = 0.5
	decisions, err := Decide(s, candidates)
	if err != nil || len(decisions) != 1 || decisions[0].Claim != "b" || decisions[0].SavedPerHr != 0.5 {
		t.Fatalf("decided %+v (%v)", decisions, err)
	}
}

// A budget that cannot be read stops its own pool alone.
func TestDecideFailsClosed(t *testing.T) {
	other := pool("lots")
	other.Name = "other"
	stuck := carrying("b", time.Minute)
	stuck.NodePool = "other"
	s := snapshot(pool(), idleNode("a"), stuck)
	s.NodePools = append(s.NodePools, other)
	decisions, err := Decide(s, Find(s))
	if err == nil {
		t.Fatal("nobody is told of the budget")
	}
	if len(decisions) != 2 || decisions[0].Phase != event.Proposed || decisions[1].Phase != event.Dropped {
		t.Fatalf("decided %+v", decisions)
	}
}
