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
		{"a part of a machine", undisturbed(many(1)...), 0.04},
		{"CPUs", undisturbed(many(10)...), 0.2},
		{"on demand", undisturbed(many(10, onDemand)...), 0.6},
		{"memory", undisturbed(many(10, gib(4))...), 0.4},
		// CPUs and memory are bought together.
		{"classes share machines", undisturbed(append(many(2, requests("cpu", "4"), selects(zone, "z1")), pod("b", requests("cpu", "0"), gib(16)))...), 0.16},
		{"classes that cannot share", undisturbed(pod("a", requests("cpu", "4"), selects(zone, "z1")), pod("b", requests("cpu", "0"), gib(8), selects(zone, "z2"))), 0.32},
		{"more pods than a machine may run", undisturbed(many(20, requests("cpu", "1m"))...), 0.08},
		{"alone on a host", undisturbed(many(5, requests("cpu", "1m"), labelled("app", "x"), awayFrom(podTerm(hostname, "x")))...), 0.2},
		{"spread over hosts", undisturbed(many(5, requests("cpu", "1m"), labelled("app", "x"), spreads(hostname, "x"))...), 0.2},
		{"nodes of whole pods", undisturbed(many(4, requests("cpu", "5"))...), 0.64},
		{"a NodePool with a limit", limited(undisturbed(many(16, tolerates("blue"))...), "8"), 0.16 + 0.48},
		{"a limit in use", limited(there(undisturbed(many(16, tolerates("blue"))...), "large"), "12"), 0.08 + 4*0.06},
		{"a device", undisturbed(many(2, requests("example.com/gpu", "1"))...), 0.32},
		{"daemons", scenario(many(6)...), 0.16},
		{"what fits nowhere is left out", undisturbed(pod("a"), pod("b", requests("cpu", "9")), pod("c", selects(zone, "z9"))), 0.04},
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

// limited limits the CPUs of pool plain, and the capacity of the other pool to on-demand.
func limited(s *planvalidator.Scenario, cpus string) *planvalidator.Scenario {
	s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse(cpus)}
	s.NodePools[1].Spec.Template.Spec.Requirements = []planvalidator.Requirement{require(capacity, "In", "on-demand")}
	return s
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

// No valid plan costs less than the bound.
func TestBoundIsBelowEveryPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := limited(scenario(), rapid.SampledFrom([]string{"2", "4", "8", "10", "100"}).Draw(t, "limit"))
		for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
			s.Pods = append(s.Pods, randomPod(t, fmt.Sprintf("p%d", i)))
		}
		s = parsed(s)
		bound, err := planvalidator.LowerBound(s)
		if err != nil {
			t.Fatal(err)
		}
		plan := cheapestPlan(s)
		if plan == nil {
			return
		}
		if found := planvalidator.CheckPlan(s, plan); len(found) > 0 {
			t.Fatalf("the plan is not valid: %v", found)
		}
		if plan.Summary.DollarsPerHour < bound*(1-1e-9) {
			t.Fatalf("a plan costs %f, and the bound is %f", plan.Summary.DollarsPerHour, bound)
		}
	})
}

// randomPod returns a pod that may be tied to a zone, kept from sharing a host, or tolerate the other pool.
func randomPod(t *rapid.T, name string) corev1.Pod {
	cpu := rapid.SampledFrom([]int64{1, 500, 1000, 1500, 2000, 3300}).Draw(t, "cpu")
	changes := []with{
		requests("cpu", resource.NewMilliQuantity(cpu, resource.DecimalSI).String()),
		requests("memory", resource.NewQuantity(rapid.Int64Range(1, 1<<33).Draw(t, "memory"), resource.BinarySI).String()),
		labelled("app", "x"),
	}
	for _, change := range []with{selects(zone, "z1"), tolerates("blue"), awayFrom(podTerm(hostname, "x")), spreads(hostname, "x")} {
		if rapid.Bool().Draw(t, "constraint") {
			changes = append(changes, change)
		}
	}
	return pod(name, changes...)
}

// cheapestPlan returns the cheapest valid plan that places all pods, or nil, by trying all ways to share nodes.
func cheapestPlan(s *planvalidator.Scenario) *planvalidator.Result {
	var names []string
	for _, p := range s.Pods {
		names = append(names, p.Name)
	}
	var best *planvalidator.Result
	var extend func(nodes []planvalidator.NewNode, left []string)
	extend = func(nodes []planvalidator.NewNode, left []string) {
		if len(left) == 0 {
			plan := planned(s, nodes...)
			if (best == nil || plan.Summary.DollarsPerHour < best.Summary.DollarsPerHour) && len(planvalidator.CheckPlan(s, plan)) == 0 {
				best = plan
			}
			return
		}
		for set := range 1 << (len(left) - 1) {
			in, out := left[:1:1], []string(nil)
			for i, name := range left[1:] {
				if set>>i&1 == 1 {
					in = append(in, name)
				} else {
					out = append(out, name)
				}
			}
			for _, node := range cheapNodes(s, in) {
				extend(append(slices.Clip(nodes), node), out)
			}
		}
	}
	extend(nil, names)
	return best
}

// cheapNodes returns for each pool the cheapest node on which the pods fit alone.
func cheapNodes(s *planvalidator.Scenario, names []string) []planvalidator.NewNode {
	alone := *s
	alone.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool { return !slices.Contains(names, p.Name) })
	var found []planvalidator.NewNode
	for _, way := range [][2]string{{"plain", "spot"}, {"tainted", "on-demand"}} {
		for _, machine := range []string{"small", "large"} {
			node := bought(way[1], launch(machine, "z1", names...))
			node.NodePool = way[0]
			if len(planvalidator.CheckPlan(&alone, planned(&alone, node))) == 0 {
				found = append(found, node)
				break
			}
		}
	}
	return found
}
