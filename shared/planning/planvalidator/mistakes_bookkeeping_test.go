package planvalidator_test

import (
	"encoding/json"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// parsed encodes and parses a scenario, because planners read it from a file.
func parsed(s *planvalidator.Scenario) *planvalidator.Scenario {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	out, err := planvalidator.ParseScenario(text, nil)
	if err != nil {
		panic(err)
	}
	return out
}

// bookkeepingMistakes are plans that contradict themselves or the scenario.
func bookkeepingMistakes() []mistake {
	right := plans(launch("large", "z1", "a", "b"))
	withNode := func() *planvalidator.Scenario {
		s := scenario(pod("a"), pod("b"))
		existing(s, "old", "large", "z1")
		return parsed(s)
	}
	twins := func() *planvalidator.Scenario { return parsed(scenario(pod("a", in("one")), pod("a", in("two")))) }
	return []mistake{
		{"a pod is missing", planvalidator.Once, twoPods, right, plans(launch("large", "z1", "a"))},
		{"a pod is twice on one node", planvalidator.Once, twoPods, right, plans(launch("large", "z1", "a", "b", "a"))},
		{"a pod is on two nodes", planvalidator.Once, twoPods, right, plans(launch("large", "z1", "a", "b"), launch("large", "z1", "b"))},
		{"an unknown pod", planvalidator.Once, twoPods, right, plans(launch("large", "z1", "a", "b", "c"))},
		{"a pod has a place and none", planvalidator.Once, twoPods, right, changed(func(r *planvalidator.Result) { leave(r, "b") }, launch("large", "z1", "a", "b"))},
		{
			"no reason", planvalidator.Once, twoPods, changed(func(r *planvalidator.Result) { leave(r, "b") }, launch("large", "z1", "a")),
			changed(func(r *planvalidator.Result) { leave(r, "b").Unscheduled["b"] = "" }, launch("large", "z1", "a")),
		},
		{"a node has no pods", planvalidator.Once, twoPods, right, plans(launch("large", "z1", "a", "b"), launch("small", "z1"))},
		{
			"a node does not exist", planvalidator.Once, withNode, changed(func(r *planvalidator.Result) { join(r, "old", "b") }, launch("large", "z1", "a")),
			changed(func(r *planvalidator.Result) { join(r, "older", "b") }, launch("large", "z1", "a")),
		},
		{
			"pods of a node are counted and not named", planvalidator.Once, withNode, changed(func(r *planvalidator.Result) { join(r, "old", "b") }, launch("large", "z1", "a")),
			changed(func(r *planvalidator.Result) { join(r, "old", "b").ExistingNodes["old"] = 2 }, launch("large", "z1", "a")),
		},
		{"names need a namespace", planvalidator.Once, twins, plans(launch("large", "z1", "one/a", "two/a")), plans(launch("large", "z1", "a", "two/a"))},
		{"the number of pods", planvalidator.Sums, twoPods, right, changed(func(r *planvalidator.Result) { r.Pods++ }, launch("large", "z1", "a", "b"))},
		{"the number of nodes", planvalidator.Sums, twoPods, right, changed(func(r *planvalidator.Result) { r.Summary.NewNodes++ }, launch("large", "z1", "a", "b"))},
		{"the number of placed pods", planvalidator.Sums, twoPods, right, changed(func(r *planvalidator.Result) { r.Summary.Scheduled-- }, launch("large", "z1", "a", "b"))},
		{"the number of other pods", planvalidator.Sums, twoPods, right, changed(func(r *planvalidator.Result) { r.Summary.Unscheduled++ }, launch("large", "z1", "a", "b"))},
		{"the price of all", planvalidator.Sums, twoPods, right, changed(func(r *planvalidator.Result) { r.Summary.DollarsPerHour -= 0.01 }, launch("large", "z1", "a", "b"))},
	}
}
