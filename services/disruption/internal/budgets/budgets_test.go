package budgets_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/budgets"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestRemainingBudget(t *testing.T) {
	const empty, drifted = karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted
	type node = planning.Node
	going := func(n *node) { n.MarkedForDeletion = true }
	unready := func(n *node) { n.Ready = false }
	rebooting := func(n *node) { n.Initialized, n.Rebooting = false, true }
	terminating := func(n *node) { n.MarkedForDeletion, n.Terminating = true, true }
	fresh := func(n *node) { n.Initialized = false }
	foreign := func(n *node) { n.Claim = "" }
	confirmed := func(n *node) { n.Proposal = &planning.Proposal{ID: "p", ConfirmedAt: fixture.Taken} }
	proposed := func(n *node) { n.Proposal = &planning.Proposal{ID: "p", ProposedAt: fixture.Taken} }
	plain := func(*node) {}
	byReason := func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "3"}, {Nodes: "1", Reasons: []karpenter.DisruptionReason{drifted}}}
	}
	for _, tt := range []struct {
		name  string
		edit  func(*karpenter.NodePool)
		nodes []func(*node)
		want  [2]int // for Empty and Drifted
	}{
		{"a percentage is rounded up", fixture.Budgets("10%"), []func(*node){plain, plain}, [2]int{1, 1}},
		{"nodes being deleted count", fixture.Budgets("2"), []func(*node){plain, plain, going}, [2]int{1, 1}},
		{"nodes that are not ready count", fixture.Budgets("2"), []func(*node){plain, unready, unready}, [2]int{0, 0}},
		{"rebooting nodes count, initialized or not", fixture.Budgets("3"), []func(*node){plain, rebooting, func(n *node) { n.Rebooting = true }}, [2]int{1, 1}},
		{"rebooting nodes are in the total", fixture.Budgets("34%"), []func(*node){plain, plain, rebooting}, [2]int{1, 1}},
		{"never below zero", fixture.Budgets("1"), []func(*node){unready, unready}, [2]int{0, 0}},
		{"confirmed nodes count", fixture.Budgets("2"), []func(*node){confirmed, plain}, [2]int{1, 1}},
		{"each node counts once", fixture.Budgets("2"), []func(*node){func(n *node) { confirmed(n); going(n); unready(n) }, plain}, [2]int{1, 1}},
		{"proposed nodes do not count", fixture.Budgets("2"), []func(*node){proposed, plain}, [2]int{2, 2}},
		{"uninitialized nodes are not in the total", fixture.Budgets("34%"), []func(*node){plain, plain, fresh, fresh}, [2]int{1, 1}},
		{"uninitialized nodes do not use the budget", fixture.Budgets("1"), []func(*node){plain, func(n *node) { fresh(n); unready(n) }}, [2]int{1, 1}},
		{"unmanaged nodes are not in the total", fixture.Budgets("50%"), []func(*node){plain, plain, foreign, foreign}, [2]int{1, 1}},
		{"nodes with a terminating instance do not use the budget", fixture.Budgets("1"), []func(*node){plain, terminating}, [2]int{1, 1}},
		{"nodes with a terminating instance are not in the total", fixture.Budgets("34%"), []func(*node){plain, plain, terminating, terminating}, [2]int{1, 1}},
		{"a budget with a reason", byReason, []func(*node){plain, plain, plain, plain}, [2]int{3, 1}},
		{"nodes disrupted for another reason count", byReason, []func(*node){plain, plain, plain, going}, [2]int{2, 0}},
		{"a budget that cannot be read allows nothing", fixture.Budgets("5", "lots"), []func(*node){plain}, [2]int{0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var nodes []node
			for _, edit := range tt.nodes {
				nodes = append(nodes, fixture.Node("a", "t4g.large", edit))
			}
			s := fixture.Snapshot(fixture.Pool(tt.edit), nodes...)
			r, problems := budgets.New(&s)
			if got := [2]int{r.Left("default", empty), r.Left("default", drifted)}; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if strings.Contains(tt.name, "cannot be read") != (len(problems) == 1) {
				t.Errorf("problems %v", problems)
			}
			for _, problem := range problems {
				if !strings.Contains(problem.Error(), "NodePool default: spec.disruption.budgets[1]") {
					t.Errorf("the problem does not name the budget: %v", problem)
				}
			}
			was := r.Left("default", empty)
			if r.AddDisrupted(new(fixture.Node("a", "t4g.large"))); was > 0 && r.Left("default", empty) != was-1 {
				t.Error("AddDisrupted does not reduce the remaining budget")
			}
		})
	}
	s := fixture.Snapshot(fixture.Pool())
	if r, _ := budgets.New(&s); r.Left("gone", empty) != 0 {
		t.Error("an unknown pool has a remaining budget")
	}
}

func TestExplainNamesBudgets(t *testing.T) {
	const empty, drifted = karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted
	going := func(n *planning.Node) { n.MarkedForDeletion = true }
	pool := fixture.Pool(fixture.Budgets("100%", "2"), func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, karpenter.Budget{Nodes: "0", Reasons: []karpenter.DisruptionReason{drifted}})
	})
	s := fixture.Snapshot(pool, fixture.Node("a", "t4g.large", going), fixture.Node("b", "t4g.large"))
	r, _ := budgets.New(&s)
	for range 2 {
		if got, want := r.Explain("default", empty), "spec.disruption.budgets[0] (100%) and spec.disruption.budgets[1] (2): 2 of 2 nodes allowed, and 1 are being disrupted or not ready"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	r.AddDisrupted(new(fixture.Node("a", "t4g.large")))
	if got, want := r.Explain("default", drifted), "spec.disruption.budgets[2] (0): 0 of 2 nodes allowed, and 2 are being disrupted or not ready"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	fixture.Budgets("some")(&pool)
	s.NodePools[0] = pool
	r, _ = budgets.New(&s)
	if got := r.Explain("default", empty); !strings.Contains(got, "budgets[3]: nodes \"some\"") {
		t.Error(got)
	}
}

// The hourly rate of a NodePool limits disruptions regardless of its budgets, and each disruption
// that begins reduces the remaining rate.
func TestHourlyBudgetLimitsDisruptions(t *testing.T) {
	asks := func(perHour, spent string) func(*karpenter.NodePool) {
		return func(p *karpenter.NodePool) {
			p.Annotations = map[string]string{policy.BudgetPerHour: perHour, budget.SpentAnnotation: spent}
		}
	}
	lately := `[{"proposal":"a","at":"` + fixture.Taken.Add(-time.Minute).Format(time.RFC3339) + `","nodes":2}]`
	for _, tt := range []struct {
		name string
		edit func(*karpenter.NodePool)
		want int
		why  string
	}{
		{"some remain", asks("3", lately), 1, "100%"},
		{"none remain", asks("2", lately), 0, "at most 2 of its nodes may be disrupted per hour"},
		{"the budgets are stricter", asks("90", ""), 4, "100%"},
		{"the rate cannot be read", asks("x", ""), 0, "joist.sh/budget-per-hour"},
		{"the record cannot be read", asks("3", "{"), 0, "joist.sh/spent-budget"},
	} {
		pool := fixture.Pool(fixture.Budgets("100%"), tt.edit)
		s := fixture.Snapshot(pool, fixture.Node("a", "t4g.large"), fixture.Node("b", "t4g.large"), fixture.Node("c", "t4g.large"), fixture.Node("d", "t4g.large"))
		r, _ := budgets.New(&s)
		for left := tt.want; left >= 0; left-- {
			if got := r.Left("default", karpenter.DisruptionReasonEmpty); got != left {
				t.Errorf("%s: %d remain, want %d", tt.name, got, left)
			}
			r.AddDisrupted(new(fixture.Node("a", "t4g.large")))
		}
		r, _ = budgets.New(&s)
		if got := r.Explain("default", karpenter.DisruptionReasonEmpty); tt.want == 0 && !strings.Contains(got, tt.why) {
			t.Errorf("%s: why: %s", tt.name, got)
		}
	}
}
