package judge_test

import (
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/integration/judge"
)

// planted is a wrong plan beside a right one for the same scenario. That both
// are judged shows that a rule is neither asleep nor jumpy.
type planted struct {
	name string
	rule judge.Rule
	// scenario is made anew for each plan.
	scenario func() *judge.Scenario
	right    func(*judge.Scenario) *judge.Result
	wrong    func(*judge.Scenario) *judge.Result
}

func (c planted) run(t *testing.T) {
	t.Run(string(c.rule)+"/"+c.name, func(t *testing.T) {
		s := c.scenario()
		for _, v := range judge.Check(s, c.right(s)) {
			t.Errorf("the right plan: %v", v)
		}
		s = c.scenario()
		found := judge.Check(s, c.wrong(s))
		if rules := rulesOf(found); !slices.Equal(rules, []judge.Rule{c.rule}) {
			t.Errorf("the wrong plan breaks %q, want %q alone: %v", rules, c.rule, found)
		}
	})
}

// plans makes plans of launches alone.
func plans(nodes ...judge.NewNode) func(*judge.Scenario) *judge.Result {
	return func(s *judge.Scenario) *judge.Result { return planned(s, slices.Clone(nodes)...) }
}

// changed makes a plan and spoils it.
func changed(change func(*judge.Result), nodes ...judge.NewNode) func(*judge.Scenario) *judge.Result {
	return func(s *judge.Scenario) *judge.Result {
		r := planned(s, slices.Clone(nodes)...)
		change(r)
		return r
	}
}

// two is a scenario of two ordinary pods.
func two() *judge.Scenario { return parsed(scenario(pod("a"), pod("b"))) }

// TestEveryRuleIsPlanted keeps the tables complete.
func TestEveryRuleIsPlanted(t *testing.T) {
	have := map[judge.Rule]bool{}
	for _, table := range [][]planted{bookkeeping(), machines(), hosts(), launches(), spreading(), company()} {
		for _, c := range table {
			have[c.rule] = true
		}
	}
	for _, rule := range []judge.Rule{
		judge.Once, judge.Sums, judge.Offered, judge.Priced, judge.Resources, judge.Selectors, judge.Taints, judge.HostPorts,
		judge.Options, judge.MinValues, judge.Limits, judge.Spread, judge.Affinity, judge.AntiAffinity,
	} {
		if !have[rule] {
			t.Errorf("no violation is planted for %s", rule)
		}
	}
}

func TestPlanted(t *testing.T) {
	for _, table := range [][]planted{bookkeeping(), machines(), hosts(), launches(), spreading(), company()} {
		for _, c := range table {
			c.run(t)
		}
	}
}
