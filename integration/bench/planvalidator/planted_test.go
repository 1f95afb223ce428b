package planvalidator_test

import (
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/integration/bench/planvalidator"
)

// planted is a wrong plan beside a right one for the same scenario. That both
// are judged shows that a rule is neither asleep nor jumpy.
type planted struct {
	name string
	rule planvalidator.Rule
	// scenario is made anew for each plan.
	scenario func() *planvalidator.Scenario
	right    func(*planvalidator.Scenario) *planvalidator.Result
	wrong    func(*planvalidator.Scenario) *planvalidator.Result
}

func (c planted) run(t *testing.T) {
	t.Run(string(c.rule)+"/"+c.name, func(t *testing.T) {
		s := c.scenario()
		for _, v := range planvalidator.Check(s, c.right(s)) {
			t.Errorf("the right plan: %v", v)
		}
		s = c.scenario()
		found := planvalidator.Check(s, c.wrong(s))
		if rules := rulesOf(found); !slices.Equal(rules, []planvalidator.Rule{c.rule}) {
			t.Errorf("the wrong plan breaks %q, want %q alone: %v", rules, c.rule, found)
		}
	})
}

// plans makes plans of launches alone.
func plans(nodes ...planvalidator.NewNode) func(*planvalidator.Scenario) *planvalidator.Result {
	return func(s *planvalidator.Scenario) *planvalidator.Result { return planned(s, slices.Clone(nodes)...) }
}

// changed makes a plan and spoils it.
func changed(change func(*planvalidator.Result), nodes ...planvalidator.NewNode) func(*planvalidator.Scenario) *planvalidator.Result {
	return func(s *planvalidator.Scenario) *planvalidator.Result {
		r := planned(s, slices.Clone(nodes)...)
		change(r)
		return r
	}
}

// two is a scenario of two ordinary pods.
func two() *planvalidator.Scenario { return parsed(scenario(pod("a"), pod("b"))) }

// TestEveryRuleIsPlanted keeps the tables complete.
func TestEveryRuleIsPlanted(t *testing.T) {
	have := map[planvalidator.Rule]bool{}
	for _, table := range [][]planted{bookkeeping(), machines(), hosts(), launches(), spreading(), company()} {
		for _, c := range table {
			have[c.rule] = true
		}
	}
	for _, rule := range []planvalidator.Rule{
		planvalidator.Once, planvalidator.Sums, planvalidator.Offered, planvalidator.Priced, planvalidator.Resources, planvalidator.Selectors, planvalidator.Taints, planvalidator.HostPorts,
		planvalidator.Options, planvalidator.MinValues, planvalidator.Limits, planvalidator.Spread, planvalidator.Affinity, planvalidator.AntiAffinity,
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
