package planvalidator_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// fleet returns three large nodes with one pod each, and enough free capacity for all
// three pods on one.
func fleet() *planvalidator.Scenario {
	s := scenario()
	for i := range s.NodePools {
		s.NodePools[i].Spec.Disruption = planvalidator.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", Budgets: []planvalidator.Budget{{Nodes: "100%"}}}
	}
	for _, name := range []string{"a", "b", "c"} {
		p := pod("p-" + name)
		p.Namespace = "default"
		existing(s, name, "large", "z1", p)
	}
	return s
}

// consolidated returns a valid result: the pod of b moves to the node of a, and a smaller
// node replaces c.
func consolidated() *planvalidator.Consolidation {
	came := launch("little", "z2", "p-c")
	came.Name, came.Price = "d", 0.12
	return &planvalidator.Consolidation{
		Nodes: 3, Pods: 3, CostBefore: 1.44, CostAfter: 0.6, NodesAfter: 2, PodsMoved: 2,
		Rounds: []planvalidator.Round{
			{Method: "multi", Removed: []string{"b"}, Moved: map[string][]string{"a": {"p-b"}}, PodsMoved: 1, CostAfter: 0.96},
			{Method: "single", Removed: []string{"c"}, Replacements: []planvalidator.NewNode{came}, PodsMoved: 1, CostAfter: 0.6},
		},
		FinalNodes: []planvalidator.FinalNode{
			{Name: "a", NodePool: "plain", InstanceType: "large", Zone: "z1", CapacityType: "on-demand", Pods: []string{"default/p-b", "default/p-a"}},
			{Name: "d", NodePool: "plain", InstanceType: "little", Zone: "z2", CapacityType: "on-demand", Pods: []string{"default/p-c"}},
		},
	}
}

// TestInvalidConsolidations breaks one thing at a time.
func TestInvalidConsolidations(t *testing.T) {
	type change func(*planvalidator.Scenario, *planvalidator.Consolidation)
	disruption := func(to planvalidator.Disruption) change {
		return func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) { s.NodePools[0].Spec.Disruption = to }
	}
	for _, c := range []struct {
		name  string
		spoil change
		want  planvalidator.Rule
	}{
		{"nothing", func(*planvalidator.Scenario, *planvalidator.Consolidation) {}, ""},
		{"a pod is lost", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) { delete(c.Rounds[0].Moved, "a") }, planvalidator.Once},
		{"a pod is in two places", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.Rounds[0].Moved["c"] = []string{"p-b"}
		}, planvalidator.Once},
		{"a node goes twice", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.Rounds[1].Removed = []string{"c", "b"}
		}, planvalidator.Once},
		{"a command without nodes", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.Rounds = append(c.Rounds, planvalidator.Round{Method: "single", CostAfter: 0.6})
		}, planvalidator.Once},
		{"a new node has the name of another", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.Rounds[1].Replacements[0].Name = "a"
		}, planvalidator.Once},
		{"a pod goes to a node that went", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.Rounds[1] = planvalidator.Round{Method: "single", Removed: []string{"c"}, Moved: map[string][]string{"b": {"p-c"}}, PodsMoved: 1, CostAfter: 0.48}
		}, planvalidator.Once},
		{"a node is too small", func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) {
			requests("cpu", "7")(&s.Nodes[1].Pods[0])
		}, planvalidator.Resources},
		{"a pod selects another zone", func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) {
			selects(zone, "z1")(&s.Nodes[2].Pods[0])
		}, planvalidator.Selectors},
		{"the price is another", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.Rounds[1].Replacements[0].Price = 0.1
		}, planvalidator.Priced},
		{"the cost is another", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) { c.Rounds[0].CostAfter = 0.9 }, planvalidator.Sums},
		{"the moves are more", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) { c.Rounds[0].PodsMoved = 0 }, planvalidator.Sums},
		{"the limit is reached while both exist", func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) {
			s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("17")}
		}, ""},
		{"the limit is reached while both exist, and both count", func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) {
			s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("17")}
			s.NodePools[0].Metadata.Annotations = map[string]string{"joist.sh/limits": "strict"}
		}, planvalidator.Limits},
		{"the limit is reached by what stays", func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) {
			s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("9")}
		}, planvalidator.Limits},
		{"it costs more than before", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			n := &c.Rounds[1].Replacements[0]
			n.InstanceType, n.Price, c.Rounds[1].CostAfter, c.CostAfter, c.FinalNodes[1].InstanceType = "large", 0.48, 0.96, 0.96, "large"
		}, planvalidator.Saves},
		{"more go than may", disruption(planvalidator.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", Budgets: []planvalidator.Budget{{Nodes: "0", Reasons: []string{"Underutilized"}}}}), planvalidator.Budgets},
		{"full nodes go where empty ones may", disruption(planvalidator.Disruption{ConsolidationPolicy: "WhenEmpty", Budgets: []planvalidator.Budget{{Nodes: "100%"}}}), planvalidator.Protects},
		{"nothing may go", disruption(planvalidator.Disruption{ConsolidateAfter: "Never", Budgets: []planvalidator.Budget{{Nodes: "100%"}}}), planvalidator.Protects},
		{"a protected pod moves", func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) {
			s.Nodes[1].Pods[0].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		}, planvalidator.Protects},
		{"a removed node has no NodePool", func(s *planvalidator.Scenario, _ *planvalidator.Consolidation) { s.Nodes[1].NodePool = "" }, planvalidator.Protects},
		{"the end is another", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.FinalNodes[0].Pods = []string{"default/p-a"}
		}, planvalidator.Final},
		{"the end has a node more", func(_ *planvalidator.Scenario, c *planvalidator.Consolidation) {
			c.FinalNodes = append(c.FinalNodes, planvalidator.FinalNode{Name: "b"})
		}, planvalidator.Final},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := fleet(), consolidated()
			c.spoil(s, r)
			rules := rulesOf(planvalidator.CheckConsolidation(s, r))
			if c.want == "" && len(rules) > 0 || c.want != "" && !slices.Contains(rules, c.want) {
				t.Errorf("found %v, want %q: %v", rules, c.want, planvalidator.CheckConsolidation(s, r))
			}
		})
	}
}

// The default budget, and percentages, which round up.
func TestBudgetsAreReadAsKubernetesDoes(t *testing.T) {
	for _, c := range []struct {
		name    string
		budgets []planvalidator.Budget
		wrong   bool
	}{
		{"a tenth by default is one of three", nil, false},
		{"a percent is one of three", []planvalidator.Budget{{Nodes: "1%"}}, false},
		{"none", []planvalidator.Budget{{Nodes: "0%"}}, true},
		{"the least of several", []planvalidator.Budget{{Nodes: "5"}, {Nodes: "0"}}, true},
		{"those of another reason do not count", []planvalidator.Budget{{Nodes: "5"}, {Nodes: "0", Reasons: []string{"Empty"}}}, false},
		{"those with a schedule are left out", []planvalidator.Budget{{Nodes: "5"}, {Nodes: "0", Schedule: new("@daily")}}, false},
		{"what cannot be read allows nothing", []planvalidator.Budget{{Nodes: "many"}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fleet()
			s.NodePools[0].Spec.Disruption.Budgets = c.budgets
			rules := rulesOf(planvalidator.CheckConsolidation(s, consolidated()))
			if slices.Contains(rules, planvalidator.Budgets) != c.wrong {
				t.Errorf("found %v, want a broken budget: %v", rules, c.wrong)
			}
		})
	}
}

func TestRepackBound(t *testing.T) {
	s := fleet()
	// Three cores of pods, and half a core of a daemon per node.
	bound, err := planvalidator.RepackBound(s)
	if err != nil || bound <= 3*0.02 || bound > 0.16 {
		t.Errorf("bound %f, %v; want more than three cores of spot and at most one large node of it", bound, err)
	}
	r := consolidated()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := planvalidator.ParseConsolidation(text); err != nil || len(planvalidator.CheckConsolidation(s, read)) > 0 {
		t.Errorf("the written result cannot be parsed: %v", err)
	}
	if _, err := planvalidator.ParseConsolidation([]byte("[]")); err == nil {
		t.Error("a list was read")
	}
}
