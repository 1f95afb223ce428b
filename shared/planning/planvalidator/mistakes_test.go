package planvalidator_test

import (
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// mistake is an invalid plan and a valid one for the same scenario. Checking both shows
// that a rule finds exactly the mistake.
type mistake struct {
	name string
	rule planvalidator.Rule
	// scenario is created for each plan.
	scenario func() *planvalidator.Scenario
	right    func(*planvalidator.Scenario) *planvalidator.Result
	wrong    func(*planvalidator.Scenario) *planvalidator.Result
}

func (c mistake) run(t *testing.T) {
	t.Run(string(c.rule)+"/"+c.name, func(t *testing.T) {
		s := c.scenario()
		for _, v := range planvalidator.CheckPlan(s, c.right(s)) {
			t.Errorf("the right plan: %v", v)
		}
		s = c.scenario()
		found := planvalidator.CheckPlan(s, c.wrong(s))
		if rules := rulesOf(found); !slices.Equal(rules, []planvalidator.Rule{c.rule}) {
			t.Errorf("the wrong plan breaks %q, want %q alone: %v", rules, c.rule, found)
		}
	})
}

// plans returns plans of launches only.
func plans(nodes ...planvalidator.NewNode) func(*planvalidator.Scenario) *planvalidator.Result {
	return func(s *planvalidator.Scenario) *planvalidator.Result { return planned(s, slices.Clone(nodes)...) }
}

// changed returns a plan with a change that makes it invalid.
func changed(change func(*planvalidator.Result), nodes ...planvalidator.NewNode) func(*planvalidator.Scenario) *planvalidator.Result {
	return func(s *planvalidator.Scenario) *planvalidator.Result {
		r := planned(s, slices.Clone(nodes)...)
		change(r)
		return r
	}
}

// twoPods returns a scenario of two ordinary pods.
func twoPods() *planvalidator.Scenario { return parsed(scenario(pod("a"), pod("b"))) }

func allMistakes() [][]mistake {
	return [][]mistake{
		bookkeepingMistakes(), machineMistakes(), hostMistakes(), nodeMistakes(), launchMistakes(), offeringMistakes(), priceMistakes(),
		spreadMistakes(), affinityMistakes(),
	}
}

// TestEveryRuleHasAMistake requires a mistake for every rule.
func TestEveryRuleHasAMistake(t *testing.T) {
	have := map[planvalidator.Rule]bool{}
	for _, table := range allMistakes() {
		for _, c := range table {
			have[c.rule] = true
		}
	}
	for _, rule := range []planvalidator.Rule{
		planvalidator.Once, planvalidator.Sums, planvalidator.Offered, planvalidator.Priced, planvalidator.Resources, planvalidator.Selectors, planvalidator.Taints, planvalidator.HostPorts,
		planvalidator.Options, planvalidator.MinValues, planvalidator.Limits, planvalidator.PriceLimits, planvalidator.Spread, planvalidator.Affinity, planvalidator.AntiAffinity,
	} {
		if !have[rule] {
			t.Errorf("no violation is mistake for %s", rule)
		}
	}
}

func TestMistakesAreFound(t *testing.T) {
	for _, table := range allMistakes() {
		for _, c := range table {
			c.run(t)
		}
	}
}
