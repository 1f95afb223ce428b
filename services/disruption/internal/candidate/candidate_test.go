package candidate_test

import (
	"math"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// findAll returns the candidate of a snapshot with one node.
func findAll(t *testing.T, n planning.Node, pool karpenter.NodePool) candidate.Candidate {
	t.Helper()
	s := fixture.Snapshot(pool, n)
	all := candidate.FindAll(&s, fixture.Stock(s))
	if len(all) != 1 {
		t.Fatalf("surveyed %d nodes", len(all))
	}
	return all[0]
}

func web(edits ...func(*planning.PodClass)) planning.PodClass {
	class := fixture.Pods("web", 2, "100m", "100Mi")
	for _, edit := range edits {
		edit(&class)
	}
	return class
}

func TestObjections(t *testing.T) {
	type node = planning.Node
	type pool = karpenter.NodePool
	protect := func(value string, started time.Time) func(*node, *pool) {
		return func(n *node, _ *pool) {
			n.Pods[0].Spec.DoNotDisrupt, n.Pods[0].Pods[0].StartedAt, n.Pods[0].Pods[1].StartedAt = value, started, started
		}
	}
	ago := func(d time.Duration) time.Time { return fixture.Taken.Add(-d) }
	for _, tt := range []struct {
		name                      string
		change                    func(n *node, p *pool)
		graceful, used, ofDrifted string
	}{
		{"nothing", func(*node, *pool) {}, "", "", ""},
		{"going", func(n *node, _ *pool) { n.MarkedForDeletion = true }, "going", "going", "going"},
		{"confirmed, whatever else is said", func(n *node, _ *pool) {
			n.MarkedForDeletion, n.Proposal = true, &planning.Proposal{ID: "p", ConfirmedAt: ago(1)}
		}, "confirmed", "confirmed", "confirmed"},
		{"not confirmed yet", func(n *node, _ *pool) { n.Proposal = &planning.Proposal{ID: "p"} }, "", "", ""},
		{"not initialized", func(n *node, _ *pool) { n.Initialized = false }, "not-initialized", "not-initialized", "not-initialized"},
		{"another pool", func(n *node, _ *pool) { n.NodePool = "gone" }, "no-pool", "no-pool", "no-pool"},
		{"nominated", func(n *node, _ *pool) { n.NominatedUntil = fixture.Taken.Add(1) }, "nominated", "nominated", "nominated"},
		{"a nomination that has passed", func(n *node, _ *pool) { n.NominatedUntil = fixture.Taken }, "", "", ""},
		{"the node's do-not-disrupt", func(n *node, _ *pool) { n.DoNotDisrupt = true }, "do-not-disrupt", "do-not-disrupt", "do-not-disrupt"},
		{"a pod's do-not-disrupt", protect("true", ago(0)), "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"for five minutes", protect("5m", ago(5*time.Minute-1)), "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"five minutes are over", protect("5m", ago(5*time.Minute)), "", "", ""},
		{"it has not begun", protect("5m", time.Time{}), "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"neither true nor a duration", protect("yes", ago(0)), "", "", ""},
		{"a duration below zero", protect("-5m", ago(0)), "", "", ""},
		{"a pod that is going is not asked", func(n *node, p *pool) {
			protect("true", ago(0))(n, p)
			n.Pods[0].Pods[0].Terminating, n.Pods[0].Pods[1].Terminating = true, true
		}, "", "", ""},
		{"a PodDisruptionBudget", func(n *node, _ *pool) { n.Pods[0].Pods[1].BlockingPDB = "default/web" }, "pod-disruption-budget", "pod-disruption-budget", "pod-disruption-budget"},
		{"a daemon's do-not-disrupt", func(n *node, p *pool) { protect("true", ago(0))(n, p); n.Pods, n.DaemonPods = nil, n.Pods }, "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"a daemon's PodDisruptionBudget", func(n *node, _ *pool) {
			n.DaemonPods = []planning.PodClass{web()}
			n.DaemonPods[0].Pods[0].BlockingPDB = "kube-system/agent"
		}, "pod-disruption-budget", "pod-disruption-budget", "pod-disruption-budget"},
		{"drift of a node whose end is bounded", func(n *node, p *pool) { protect("true", ago(0))(n, p); n.HasTerminationGracePeriod = true }, "pod-do-not-disrupt", "pod-do-not-disrupt", ""},
		{"not past the node's own", func(n *node, _ *pool) { n.DoNotDisrupt, n.HasTerminationGracePeriod = true, true }, "do-not-disrupt", "do-not-disrupt", "do-not-disrupt"},
		{"a fixed number", func(_ *node, p *pool) { p.Spec.Replicas = new(int64) }, "static", "static", ""},
		{"never", func(_ *node, p *pool) { p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{} }, "never", "never", ""},
		{"a pod left just now", func(n *node, _ *pool) { n.LastPodEvent = ago(time.Minute - 1) }, "not-quiet", "not-quiet", ""},
		{"a pod left a minute ago", func(n *node, _ *pool) { n.LastPodEvent = ago(time.Minute) }, "", "", ""},
		{"a pod will leave: a clock is wrong", func(n *node, _ *pool) { n.LastPodEvent = ago(-time.Hour) }, "not-quiet", "not-quiet", ""},
		{"initialized just now", func(n *node, _ *pool) { n.InitializedAt = ago(0) }, "not-quiet", "not-quiet", ""},
		{"no times", func(n *node, _ *pool) { n.InitializedAt = time.Time{} }, "not-quiet", "not-quiet", ""},
		{"WhenEmpty", func(_ *node, p *pool) { p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmpty }, "", "policy", ""},
		{"Balanced", func(_ *node, p *pool) { p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyBalanced }, "", "", ""},
		{"no price", func(n *node, _ *pool) { n.Labels["topology.kubernetes.io/zone"] = "mars-1a" }, "", "price-unknown", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, p := fixture.Node("a", "t4g.large", fixture.With(web())), fixture.Pool()
			tt.change(&n, &p)
			c := findAll(t, n, p)
			for what, got := range map[string][2]string{
				"consolidation of empty nodes": {c.CheckConsolidatable(fixture.Taken).Rule, tt.graceful},
				"consolidation":                {c.CheckUnderutilized(fixture.Taken).Rule, tt.used},
				"drift":                        {c.CheckDrifted().Rule, tt.ofDrifted},
			} {
				if got[0] != got[1] {
					t.Errorf("%s: got %q, want %q", what, got[0], got[1])
				}
			}
		})
	}
}

func TestUnmanagedNodesAreNotCandidates(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), fixture.Node("a", "t4g.large", func(n *planning.Node) { n.Claim = "" }),
		fixture.Node("b", "t4g.large", func(n *planning.Node) { n.ClaimUID = "" }), fixture.Node("c", "t4g.large"))
	if all := candidate.FindAll(&s, fixture.Stock(s)); len(all) != 1 || all[0].Index != 2 {
		t.Fatalf("surveyed %+v", all)
	}
}

func TestEvictionCost(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec planning.PodSpec
		want float64
	}{
		{"an ordinary pod", planning.PodSpec{}, 1},
		{"deletion cost", planning.PodSpec{DeletionCost: "134217728"}, 2},
		{"deletion cost below zero", planning.PodSpec{DeletionCost: "-268435456"}, -1},
		{"no number", planning.PodSpec{DeletionCost: "dear"}, 1},
		{"not a number", planning.PodSpec{DeletionCost: "NaN"}, 1},
		{"priority", planning.PodSpec{Priority: 1 << 24}, 1.5},
		{"both", planning.PodSpec{Priority: 1 << 25, DeletionCost: "134217728"}, 3},
		{"at most ten", planning.PodSpec{Priority: 1_000_000_000}, 10},
		{"at least minus ten", planning.PodSpec{Priority: math.MinInt32}, -10},
	} {
		if got := candidate.EvictionCost(&tt.spec); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestEmpty(t *testing.T) {
	cheap := func(c *planning.PodClass) { c.Spec.DeletionCost = "-2147483647" }
	leaving := func(c *planning.PodClass) { c.Pods[0].Terminating, c.Pods[1].Terminating = true, true }
	half := func(c *planning.PodClass) { c.Pods[0].Terminating = true }
	for _, tt := range []struct {
		name  string
		pods  []planning.PodClass
		empty bool
		cost  float64
		move  int
	}{
		{"no pods", nil, true, 1, 0},
		{"two", []planning.PodClass{web()}, false, 3, 2},
		{"one of them is going", []planning.PodClass{web(half)}, false, 2, 1},
		{"both are", []planning.PodClass{web(leaving)}, true, 1, 0},
		{"they would rather go", []planning.PodClass{web(cheap)}, true, 1, 2},
		{"and pay for no others", []planning.PodClass{web(cheap), web()}, false, 3, 4},
	} {
		c := findAll(t, fixture.Node("a", "t4g.large", fixture.With(tt.pods...)), fixture.Pool())
		if c.IsEmpty() != tt.empty || c.Cost != tt.cost || c.Pods != tt.move {
			t.Errorf("%s: empty %v, costs %v, %d pods", tt.name, c.IsEmpty(), c.Cost, c.Pods)
		}
	}
}

func TestLifetime(t *testing.T) {
	for left, want := range map[time.Duration]float64{time.Hour: 0.5, 3 * time.Hour: 0.75, -time.Minute: 0} {
		n := fixture.Node("a", "t4g.large", func(n *planning.Node) { n.ExpiresAt = fixture.Taken.Add(left) })
		if c := findAll(t, n, fixture.Pool()); math.Abs(c.Lifetime()-want) > 1e-9 {
			t.Errorf("with %s left: got %v, want %v", left, c.Lifetime(), want)
		}
	}
	if c := findAll(t, fixture.Node("a", "t4g.large"), fixture.Pool()); c.Lifetime() != 1 {
		t.Errorf("one that never ends: got %v", c.Lifetime())
	}
}

// A missing or invalid price never makes a saving.
func TestPriceBadInput(t *testing.T) {
	for name, price := range map[string]float64{"negative": -1, "zero": 0, "no number": math.NaN(), "endless": math.Inf(1)} {
		s := fixture.Snapshot(fixture.Pool(), fixture.Node("a", "t4g.large", fixture.With(web())))
		stock := fixture.Stock(s)
		for _, t := range stock.ByNodeClass["default"] {
			for i := range t.Offerings {
				t.Offerings[i].PricePerHour = price
			}
		}
		c := candidate.FindAll(&s, stock)[0]
		if c.Price != 0 || c.CheckUnderutilized(fixture.Taken).Rule != candidate.RulePrice {
			t.Errorf("%s: price %v, objection %+v", name, c.Price, c.CheckUnderutilized(fixture.Taken))
		}
	}
	if c := findAll(t, fixture.Node("a", "t4g.large"), fixture.Pool()); c.Price != 0.0832 || c.SavingRatio() != 0.0832 {
		t.Errorf("a good one: price %v", c.Price)
	}
}
