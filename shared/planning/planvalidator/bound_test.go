package planvalidator_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// undisturbed returns a scenario without daemons, so that the numbers are round: a CPU
// with 2 GiB costs 0.02 as spot and 0.06 on demand.
func undisturbed(pods ...corev1.Pod) *planvalidator.Scenario {
	s := scenario(pods...)
	s.DaemonSetPods = nil
	return s
}

func TestBound(t *testing.T) {
	many := func(n int, changes ...with) []corev1.Pod {
		var pods []corev1.Pod
		for i := range n {
			pods = append(pods, pod(fmt.Sprintf("p%d", i), changes...))
		}
		return pods
	}
	onDemand := selects(capacity, "on-demand")
	gib := func(n int) with { return requests("memory", fmt.Sprintf("%dGi", n)) }
	for _, c := range []struct {
		name     string
		scenario *planvalidator.Scenario
		want     float64
	}{
		{"no pods", undisturbed(), 0},
		{"a part of a machine", undisturbed(many(1)...), 0.02},
		{"CPUs", undisturbed(many(10)...), 0.2},
		{"on demand", undisturbed(many(10, onDemand)...), 0.6},
		{"memory", undisturbed(many(10, gib(4))...), 0.4},
		// CPUs and memory are bought together.
		{"classes share machines", undisturbed(append(many(2, requests("cpu", "4"), selects(zone, "z1")), pod("b", requests("cpu", "0"), gib(16)))...), 0.16},
		{"classes that cannot share", undisturbed(pod("a", requests("cpu", "4"), selects(zone, "z1")), pod("b", requests("cpu", "0"), gib(8), selects(zone, "z2"))), 0.16},
		{"more pods than a machine may run", undisturbed(many(20, requests("cpu", "1m"))...), 0.08},
		{"alone on a host", undisturbed(many(5, requests("cpu", "1m"), labelled("app", "x"), awayFrom(podTerm(hostname, "x")))...), 0.2},
		{"a device", undisturbed(many(2, requests("example.com/gpu", "1"))...), 0.32},
		{"daemons", scenario(many(6)...), 6 / 7.5 * 0.16},
		{"what fits nowhere is left out", undisturbed(pod("a"), pod("b", requests("cpu", "9")), pod("c", selects(zone, "z9"))), 0.02},
		{"there is room", there(undisturbed(many(5)...), "large"), 0},
		{"there is some room", there(undisturbed(many(10)...), "large"), 0.04},
		{"not for these", there(undisturbed(many(5, selects(zone, "z2"))...), "large"), 0.1},
		{"there is a host", there(undisturbed(many(3, requests("cpu", "1m"), labelled("app", "x"), awayFrom(podTerm(hostname, "x")))...), "small"), 0.08},
		{"resources without an offering", there(soldOut(undisturbed(many(2)...), "spot", "on-demand"), "large"), 0},
		{"sold out", soldOut(undisturbed(many(2)...), "spot"), 0.12},
		{"an open label", open(undisturbed(pod("a", selects("team", "red")), pod("b", selects("team", "green")))), 0.04},
	} {
		got, err := planvalidator.LowerBound(parsed(c.scenario))
		if err != nil || math.Abs(got-c.want) > 1e-3*c.want+1e-6 {
			t.Errorf("%s: %f (%v), want %f", c.name, got, err, c.want)
		}
	}
}

func there(s *planvalidator.Scenario, machine string) *planvalidator.Scenario {
	existing(s, "old", machine, "z1")
	return s
}

func soldOut(s *planvalidator.Scenario, capacityTypes ...string) *planvalidator.Scenario {
	for _, t := range s.InstanceTypes {
		for i := range t.Offerings {
			t.Offerings[i].Available = !slices.Contains(capacityTypes, t.Offerings[i].CapacityType)
		}
	}
	return s
}

func open(s *planvalidator.Scenario) *planvalidator.Scenario {
	s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{require("team", "In", "red", "green")}
	return s
}

// Repacking a cluster costs at least the bound of its pods.
func TestUnbound(t *testing.T) {
	s := undisturbed(pod("a"))
	existing(s, "old", "large", "z1", pod("b"), pod("c"))
	got, err := planvalidator.LowerBound(parsed(s).Unbound())
	if err != nil || math.Abs(got-0.06) > 1e-4 {
		t.Errorf("%f (%v), want 0.06", got, err)
	}
}

// No valid plan costs less than the bound. The plans here have one node per pod, or as
// few nodes as fit one after the other.
func TestBoundIsBelowEveryPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenario()
		for i := range rapid.IntRange(1, 12).Draw(t, "pods") {
			changes := []with{
				requests("cpu", resource.NewMilliQuantity(rapid.Int64Range(1, 7000).Draw(t, "cpu"), resource.DecimalSI).String()),
				requests("memory", resource.NewQuantity(rapid.Int64Range(1, 1<<33).Draw(t, "memory"), resource.BinarySI).String()),
			}
			if rapid.Bool().Draw(t, "selects") {
				changes = append(changes, selects(zone, rapid.SampledFrom([]string{"z1", "z2"}).Draw(t, "zone")))
			}
			s.Pods = append(s.Pods, pod(fmt.Sprintf("p%d", i), changes...))
		}
		s = parsed(s)
		bound, err := planvalidator.LowerBound(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, crowd := range []int{1, 3} {
			plan := greedy(s, crowd)
			if found := planvalidator.CheckPlan(s, plan); len(found) > 0 {
				t.Fatalf("the plan is not valid: %v", found)
			}
			if plan.Summary.DollarsPerHour < bound*(1-1e-9) {
				t.Fatalf("a plan costs %f, and the bound is %f", plan.Summary.DollarsPerHour, bound)
			}
		}
	})
}

// greedy places up to crowd consecutive pods on the cheapest node on which, according to
// the validator, they fit.
func greedy(s *planvalidator.Scenario, crowd int) *planvalidator.Result {
	var nodes []planvalidator.NewNode
	for i := 0; i < len(s.Pods); {
		for n := min(crowd, len(s.Pods)-i); n > 0; n-- {
			var names []string
			for _, p := range s.Pods[i : i+n] {
				names = append(names, p.Name)
			}
			if node, ok := cheapestNode(s, names); ok {
				nodes, i = append(nodes, node), i+n
				break
			}
		}
	}
	return planned(s, nodes...)
}

// cheapestNode returns the cheapest node for the pods.
func cheapestNode(s *planvalidator.Scenario, names []string) (planvalidator.NewNode, bool) {
	for _, name := range []string{"small", "large"} {
		for _, z := range []string{"z1", "z2"} {
			node := bought("spot", launch(name, z, names...))
			alone := *s
			alone.Pods = nil
			for _, p := range s.Pods {
				for _, name := range names {
					if p.Name == name {
						alone.Pods = append(alone.Pods, p)
					}
				}
			}
			if len(planvalidator.CheckPlan(&alone, planned(&alone, node))) == 0 {
				return node, true
			}
		}
	}
	return planvalidator.NewNode{}, false
}
