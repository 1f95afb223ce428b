package candidate_test

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		t.Fatalf("found %d nodes", len(all))
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

func TestCandidateObjections(t *testing.T) {
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
		{"going", func(n *node, _ *pool) { n.MarkedForDeletion = true }, "deleting", "deleting", "deleting"},
		{"already confirmed, and other objections", func(n *node, _ *pool) {
			n.MarkedForDeletion, n.Proposal = true, &planning.Proposal{ID: "p", ConfirmedAt: ago(1)}
		}, "proposal-confirmed", "proposal-confirmed", "proposal-confirmed"},
		{"proposed but not confirmed", func(n *node, _ *pool) { n.Proposal = &planning.Proposal{ID: "p"} }, "", "", ""},
		{"not initialized", func(n *node, _ *pool) { n.Initialized = false }, "not-initialized", "not-initialized", "not-initialized"},
		{"unknown pool", func(n *node, _ *pool) { n.NodePool = "gone" }, "no-pool", "no-pool", "no-pool"},
		{"pool that waits for the approval of its deletion", func(_ *node, p *pool) { p.DeletionTimestamp = &metav1.Time{Time: ago(time.Hour)} }, "nodepool-deleting", "nodepool-deleting", "nodepool-deleting"},
		{"nominated", func(n *node, _ *pool) { n.NominatedUntil = fixture.Taken.Add(1) }, "nominated", "nominated", "nominated"},
		{"nomination in the past", func(n *node, _ *pool) { n.NominatedUntil = fixture.Taken }, "", "", ""},
		{"do-not-disrupt on the node", func(n *node, _ *pool) { n.DoNotDisrupt = true }, "do-not-disrupt", "do-not-disrupt", "do-not-disrupt"},
		{"a pod's do-not-disrupt", protect("true", ago(0)), "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"pod protected for five minutes, not over", protect("5m", ago(5*time.Minute-1)), "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"pod protected for five minutes, over", protect("5m", ago(5*time.Minute)), "", "", ""},
		{"pod protected for five minutes, not started", protect("5m", time.Time{}), "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"invalid do-not-disrupt value", protect("yes", ago(0)), "", "", ""},
		{"negative do-not-disrupt duration", protect("-5m", ago(0)), "", "", ""},
		{"terminating pods do not object", func(n *node, p *pool) {
			protect("true", ago(0))(n, p)
			n.Pods[0].Pods[0].Terminating, n.Pods[0].Pods[1].Terminating = true, true
		}, "", "", ""},
		{"a PodDisruptionBudget", func(n *node, _ *pool) { n.Pods[0].Pods[1].BlockingPDB = "default/web" }, "pod-disruption-budget", "pod-disruption-budget", "pod-disruption-budget"},
		{"a daemon's do-not-disrupt", func(n *node, p *pool) { protect("true", ago(0))(n, p); n.Pods, n.DaemonPods = nil, n.Pods }, "pod-do-not-disrupt", "pod-do-not-disrupt", "pod-do-not-disrupt"},
		{"a daemon's PodDisruptionBudget", func(n *node, _ *pool) {
			n.DaemonPods = []planning.PodClass{web()}
			n.DaemonPods[0].Pods[0].BlockingPDB = "kube-system/agent"
		}, "pod-disruption-budget", "pod-disruption-budget", "pod-disruption-budget"},
		{"drift of a node with a termination grace period", func(n *node, p *pool) { protect("true", ago(0))(n, p); n.HasTerminationGracePeriod = true }, "pod-do-not-disrupt", "pod-do-not-disrupt", ""},
		{"do-not-disrupt on a node with a termination grace period", func(n *node, _ *pool) { n.DoNotDisrupt, n.HasTerminationGracePeriod = true, true }, "do-not-disrupt", "do-not-disrupt", "do-not-disrupt"},
		{"static pool", func(_ *node, p *pool) { p.Spec.Replicas = new(int64) }, "static-nodepool", "static-nodepool", ""},
		{"never", func(_ *node, p *pool) { p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{} }, "consolidation-disabled", "consolidation-disabled", ""},
		{"pod event less than consolidateAfter ago", func(n *node, _ *pool) { n.LastPodEvent = ago(time.Minute - 1) }, "consolidate-after", "consolidate-after", ""},
		{"pod event consolidateAfter ago", func(n *node, _ *pool) { n.LastPodEvent = ago(time.Minute) }, "", "", ""},
		{"pod event in the future", func(n *node, _ *pool) { n.LastPodEvent = ago(-time.Hour) }, "consolidate-after", "consolidate-after", ""},
		{"initialized just now", func(n *node, _ *pool) { n.InitializedAt = ago(0) }, "consolidate-after", "consolidate-after", ""},
		{"unknown times", func(n *node, _ *pool) { n.InitializedAt = time.Time{} }, "consolidate-after", "consolidate-after", ""},
		{"WhenEmpty", func(_ *node, p *pool) { p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmpty }, "", "consolidation-policy", ""},
		{"Balanced", func(_ *node, p *pool) { p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyBalanced }, "", "", ""},
		{"unknown price", func(n *node, _ *pool) { n.Labels["topology.kubernetes.io/zone"] = "mars-1a" }, "", "price-unknown", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, p := fixture.Node("a", "t4g.large", fixture.With(web())), fixture.Pool()
			tt.change(&n, &p)
			c := findAll(t, n, p)
			for what, got := range map[string][2]string{
				"empty-node consolidation": {c.CheckConsolidatable(fixture.Taken).Rule, tt.graceful},
				"consolidation":            {c.CheckUnderutilized(fixture.Taken).Rule, tt.used},
				"drift":                    {c.CheckDrifted().Rule, tt.ofDrifted},
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
	auto := fixture.Pool()
	auto.Name = "general-purpose"
	auto.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
	s.NodePools, s.Nodes = append(s.NodePools, auto), append(s.Nodes, fixture.Node("d", "t4g.large", func(n *planning.Node) { n.NodePool = auto.Name }))
	if all := candidate.FindAll(&s, fixture.Stock(s)); len(all) != 1 || all[0].Index != 2 {
		t.Fatalf("found %+v", all)
	}
}

func TestEvictionCost(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec planning.PodSpec
		want float64
	}{
		{"default cost", planning.PodSpec{}, 1},
		{"deletion cost", planning.PodSpec{DeletionCost: "134217728"}, 2},
		{"negative deletion cost", planning.PodSpec{DeletionCost: "-268435456"}, -1},
		{"invalid deletion cost", planning.PodSpec{DeletionCost: "dear"}, 1},
		{"deletion cost NaN", planning.PodSpec{DeletionCost: "NaN"}, 1},
		{"fraction", planning.PodSpec{DeletionCost: "134217728.5"}, 1},
		{"largest deletion cost", planning.PodSpec{DeletionCost: "2147483647"}, 10},
		{"more than an int32", planning.PodSpec{DeletionCost: "2147483648"}, 1},
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

func TestCandidateCost(t *testing.T) {
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
		{"one of two pods is terminating", []planning.PodClass{web(half)}, false, 2, 1},
		{"all pods are terminating", []planning.PodClass{web(leaving)}, true, 1, 0},
		{"pods with a negative cost", []planning.PodClass{web(cheap)}, true, 1, 2},
		{"negative costs do not reduce the others", []planning.PodClass{web(cheap), web()}, false, 3, 4},
	} {
		c := findAll(t, fixture.Node("a", "t4g.large", fixture.With(tt.pods...)), fixture.Pool())
		if c.IsEmpty() != tt.empty || c.Cost != tt.cost || c.Pods != tt.move {
			t.Errorf("%s: empty %v, cost %v, %d pods", tt.name, c.IsEmpty(), c.Cost, c.Pods)
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
		t.Errorf("without an expiry: got %v", c.Lifetime())
	}
}

// A missing or invalid price never makes a saving.
func TestInvalidPriceGivesNoSaving(t *testing.T) {
	for name, price := range map[string]float64{"negative": -1, "zero": 0, "not a number": math.NaN(), "endless": math.Inf(1)} {
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
		t.Errorf("with a valid price: price %v", c.Price)
	}
}
