package judge_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/integration/judge"
)

// fleet is three large nodes with a pod each, and room for all three pods on one.
func fleet() *judge.Scenario {
	s := scenario()
	for i := range s.NodePools {
		s.NodePools[i].Spec.Disruption = judge.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", Budgets: []judge.Budget{{Nodes: "100%"}}}
	}
	for _, name := range []string{"a", "b", "c"} {
		p := pod("p-" + name)
		p.Namespace = "default"
		existing(s, name, "large", "z1", p)
	}
	return s
}

// consolidated is what is right: the pod of b joins that of a, and a smaller node
// comes for c.
func consolidated() *judge.Consolidation {
	came := launch("little", "z2", "p-c")
	came.Name, came.Price = "d", 0.12
	return &judge.Consolidation{
		Nodes: 3, Pods: 3, CostBefore: 1.44, CostAfter: 0.6, NodesAfter: 2, PodsMoved: 2,
		Rounds: []judge.Round{
			{Method: "multi", Removed: []string{"b"}, Moved: map[string][]string{"a": {"p-b"}}, PodsMoved: 1, CostAfter: 0.96},
			{Method: "single", Removed: []string{"c"}, Replacements: []judge.NewNode{came}, PodsMoved: 1, CostAfter: 0.6},
		},
		FinalNodes: []judge.FinalNode{
			{Name: "a", NodePool: "plain", InstanceType: "large", Zone: "z1", CapacityType: "on-demand", Pods: []string{"default/p-b", "default/p-a"}},
			{Name: "d", NodePool: "plain", InstanceType: "little", Zone: "z2", CapacityType: "on-demand", Pods: []string{"default/p-c"}},
		},
	}
}

// TestConsolidationsThatAreWrong breaks one thing at a time.
func TestConsolidationsThatAreWrong(t *testing.T) {
	type change func(*judge.Scenario, *judge.Consolidation)
	disruption := func(to judge.Disruption) change {
		return func(s *judge.Scenario, _ *judge.Consolidation) { s.NodePools[0].Spec.Disruption = to }
	}
	for _, c := range []struct {
		name  string
		spoil change
		want  judge.Rule
	}{
		{"nothing", func(*judge.Scenario, *judge.Consolidation) {}, ""},
		{"a pod is lost", func(_ *judge.Scenario, c *judge.Consolidation) { delete(c.Rounds[0].Moved, "a") }, judge.Once},
		{"a pod is in two places", func(_ *judge.Scenario, c *judge.Consolidation) { c.Rounds[0].Moved["c"] = []string{"p-b"} }, judge.Once},
		{"a node goes twice", func(_ *judge.Scenario, c *judge.Consolidation) { c.Rounds[1].Removed = []string{"c", "b"} }, judge.Once},
		{"a command without nodes", func(_ *judge.Scenario, c *judge.Consolidation) {
			c.Rounds = append(c.Rounds, judge.Round{Method: "single", CostAfter: 0.6})
		}, judge.Once},
		{"a new node has the name of another", func(_ *judge.Scenario, c *judge.Consolidation) { c.Rounds[1].Replacements[0].Name = "a" }, judge.Once},
		{"a pod goes to a node that went", func(_ *judge.Scenario, c *judge.Consolidation) {
			c.Rounds[1] = judge.Round{Method: "single", Removed: []string{"c"}, Moved: map[string][]string{"b": {"p-c"}}, PodsMoved: 1, CostAfter: 0.48}
		}, judge.Once},
		{"a node is too small", func(s *judge.Scenario, _ *judge.Consolidation) { requests("cpu", "7")(&s.Nodes[1].Pods[0]) }, judge.Resources},
		{"a pod selects another zone", func(s *judge.Scenario, _ *judge.Consolidation) { selects(zone, "z1")(&s.Nodes[2].Pods[0]) }, judge.Selectors},
		{"the price is another", func(_ *judge.Scenario, c *judge.Consolidation) { c.Rounds[1].Replacements[0].Price = 0.1 }, judge.Priced},
		{"the cost is another", func(_ *judge.Scenario, c *judge.Consolidation) { c.Rounds[0].CostAfter = 0.9 }, judge.Sums},
		{"the moves are more", func(_ *judge.Scenario, c *judge.Consolidation) { c.Rounds[0].PodsMoved = 0 }, judge.Sums},
		{"the limit is reached while both exist", func(s *judge.Scenario, _ *judge.Consolidation) {
			s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("17")}
		}, ""},
		{"the limit is reached while both exist, and both count", func(s *judge.Scenario, _ *judge.Consolidation) {
			s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("17")}
			s.NodePools[0].Metadata.Annotations = map[string]string{"joist.sh/limits": "strict"}
		}, judge.Limits},
		{"the limit is reached by what stays", func(s *judge.Scenario, _ *judge.Consolidation) {
			s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("9")}
		}, judge.Limits},
		{"it costs more than before", func(_ *judge.Scenario, c *judge.Consolidation) {
			n := &c.Rounds[1].Replacements[0]
			n.InstanceType, n.Price, c.Rounds[1].CostAfter, c.CostAfter, c.FinalNodes[1].InstanceType = "large", 0.48, 0.96, 0.96, "large"
		}, judge.Saves},
		{"more go than may", disruption(judge.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", Budgets: []judge.Budget{{Nodes: "0", Reasons: []string{"Underutilized"}}}}), judge.Budgets},
		{"full nodes go where empty ones may", disruption(judge.Disruption{ConsolidationPolicy: "WhenEmpty", Budgets: []judge.Budget{{Nodes: "100%"}}}), judge.Protects},
		{"nothing may go", disruption(judge.Disruption{ConsolidateAfter: "Never", Budgets: []judge.Budget{{Nodes: "100%"}}}), judge.Protects},
		{"a protected pod moves", func(s *judge.Scenario, _ *judge.Consolidation) {
			s.Nodes[1].Pods[0].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		}, judge.Protects},
		{"a node of nobody goes", func(s *judge.Scenario, _ *judge.Consolidation) { s.Nodes[1].NodePool = "" }, judge.Protects},
		{"the end is another", func(_ *judge.Scenario, c *judge.Consolidation) { c.FinalNodes[0].Pods = []string{"default/p-a"} }, judge.Final},
		{"the end has a node more", func(_ *judge.Scenario, c *judge.Consolidation) {
			c.FinalNodes = append(c.FinalNodes, judge.FinalNode{Name: "b"})
		}, judge.Final},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := fleet(), consolidated()
			c.spoil(s, r)
			rules := rulesOf(judge.CheckConsolidation(s, r))
			if c.want == "" && len(rules) > 0 || c.want != "" && !slices.Contains(rules, c.want) {
				t.Errorf("found %v, want %q: %v", rules, c.want, judge.CheckConsolidation(s, r))
			}
		})
	}
}

// A budget of the default and percentages round up.
func TestBudgetsAreReadAsKubernetesDoes(t *testing.T) {
	for _, c := range []struct {
		name    string
		budgets []judge.Budget
		wrong   bool
	}{
		{"a tenth by default is one of three", nil, false},
		{"a percent is one of three", []judge.Budget{{Nodes: "1%"}}, false},
		{"none", []judge.Budget{{Nodes: "0%"}}, true},
		{"the least of several", []judge.Budget{{Nodes: "5"}, {Nodes: "0"}}, true},
		{"those of another reason do not count", []judge.Budget{{Nodes: "5"}, {Nodes: "0", Reasons: []string{"Empty"}}}, false},
		{"those with a schedule are left out", []judge.Budget{{Nodes: "5"}, {Nodes: "0", Schedule: new("@daily")}}, false},
		{"what cannot be read allows nothing", []judge.Budget{{Nodes: "many"}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fleet()
			s.NodePools[0].Spec.Disruption.Budgets = c.budgets
			rules := rulesOf(judge.CheckConsolidation(s, consolidated()))
			if slices.Contains(rules, judge.Budgets) != c.wrong {
				t.Errorf("found %v, want a broken budget: %v", rules, c.wrong)
			}
		})
	}
}

func TestRepackBound(t *testing.T) {
	s := fleet()
	// Three cores of pods and half a core of a daemon for each node.
	bound, err := judge.RepackBound(s)
	if err != nil || bound <= 3*0.02 || bound > 0.16 {
		t.Errorf("bound %f, %v; want more than three cores of spot and at most one large node of it", bound, err)
	}
	r := consolidated()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := judge.ParseConsolidation(text); err != nil || len(judge.CheckConsolidation(s, read)) > 0 {
		t.Errorf("what was written is not read: %v", err)
	}
	if _, err := judge.ParseConsolidation([]byte("[]")); err == nil {
		t.Error("a list was read")
	}
}
