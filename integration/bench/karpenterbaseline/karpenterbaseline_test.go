package karpenterbaseline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// machines are a small and a large type, one with a device that costs less than the large
// one, and one whose spot price exceeds the small one's on-demand price.
const machines = `[
	{"name": "small", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "pods": "20"}, "labels": {"karpenter.k8s.aws/instance-cpu": "2"},
	 "offerings": [{"zone": "z1", "capacityType": "on-demand", "price": 0.1, "available": true}, {"zone": "z1", "capacityType": "spot", "price": 0.05, "available": true}]},
	{"name": "large", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "8", "pods": "20"}, "labels": {"karpenter.k8s.aws/instance-cpu": "8"},
	 "offerings": [{"zone": "z1", "capacityType": "on-demand", "price": 0.4, "available": true}, {"zone": "z2", "capacityType": "on-demand", "price": 0.3, "available": false}]},
	{"name": "device", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "8", "pods": "20", "nvidia.com/gpu": "1"}, "labels": {"karpenter.k8s.aws/instance-cpu": "8"},
	 "offerings": [{"zone": "z1", "capacityType": "on-demand", "price": 0.35, "available": true}]},
	{"name": "dear", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "pods": "20"}, "labels": {"karpenter.k8s.aws/instance-cpu": "2"},
	 "offerings": [{"zone": "z1", "capacityType": "spot", "price": 0.2, "available": true}]}]`

func pool(name, more string) string {
	return fmt.Sprintf(`{"metadata": {"name": "%s"}, "spec": {%s "template": {"spec": {"requirements": [],
		"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c"}}}}}`, name, more)
}

func pod(name, cpu, more string) string {
	return fmt.Sprintf(`{"metadata": {"name": "%s"}, "spec": {%s "containers": [{"name": "c", "resources": {"limits": {"cpu": "%s"}}}]}}`, name, more, cpu)
}

const onlyElsewhere = `"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
	{"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}]}}},`

// TestKnownPlans checks known decisions of upstream's scheduler, to show that it is called as
// in production.
func TestKnownPlans(t *testing.T) {
	const onDemand, device = `"nodeSelector": {"karpenter.sh/capacity-type": "on-demand"},`, `"nodeSelector": {"node.kubernetes.io/instance-type": "device"},`
	node := func(pods string) string {
		return `[{"name": "old", "nodePool": "a", "instanceType": "small", "zone": "z1", "capacityType": "spot", "pods": [` + pods + `]}]`
	}
	for _, c := range []struct {
		name, pools, pods, nodes, daemons string
		// want lists each new node with its pods, then the existing nodes with theirs, then
		// the pods without a node.
		want string
	}{
		{name: "the cheapest offering", pools: pool("a", ""), pods: pod("p", "1", ""), want: "a small spot 0.05 [p]; []; "},
		{name: "on-demand only", pools: pool("a", ""), pods: pod("p", "1", onDemand), want: "a small on-demand 0.1 [p]; []; "},
		{name: "exotic instance types are avoided", pools: pool("a", ""), pods: pod("p", "4", ""), want: "a large on-demand 0.4 [p]; []; "},
		{name: "exotic instance types if they are required", pools: pool("a", ""), pods: pod("p", "4", device), want: "a device on-demand 0.35 [p]; []; "},
		{name: "NodePools by weight", pools: pool("a", `"weight": 2,`) + "," + pool("b", `"weight": 1,`), pods: pod("p", "1", ""), want: "a small spot 0.05 [p]; []; "},
		{name: "of equal NodePools the later name", pools: pool("a", "") + "," + pool("b", ""), pods: pod("p", "1", ""), want: "b small spot 0.05 [p]; []; "},
		{name: "limits", pools: pool("a", `"limits": {"cpu": "2"},`), pods: pod("p", "1", "") + "," + pod("q", "1500m", ""), want: "a small spot 0.05 [q]; []; p"},
		{name: "existing nodes first", pools: pool("a", ""), pods: pod("p", "1", "") + "," + pod("q", "1500m", ""), nodes: node(""), want: "a small spot 0.05 [p]; [q]; "},
		{name: "bound pods use capacity", pools: pool("a", ""), pods: pod("p", "1", ""), nodes: node(pod("there", "1500m", "")), want: "a small spot 0.05 [p]; []; "},
		{name: "daemons", pools: pool("a", ""), pods: pod("p", "1", ""), daemons: pod("d", "1500m", ""), want: "a large on-demand 0.4 [p]; []; "},
		{name: "a pod for another provisioner", pools: pool("a", ""), pods: pod("p", "1", onlyElsewhere), want: "[]; p"},
		{name: "too large", pools: pool("a", ""), pods: pod("p", "9", ""), want: "[]; p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"name": "s", "instanceTypes": %s, "nodePools": [%s], "pods": [%s], "nodes": %s, "daemonSetPods": [%s]}`,
				machines, c.pools, c.pods, or(c.nodes, "[]"), c.daemons)
			r := plan(t, text, karpenterbaseline.Options{Concurrency: 1})
			var got strings.Builder
			for _, n := range r.NewNodes {
				fmt.Fprintf(&got, "%s %s %s %v %v; ", n.NodePool, n.InstanceType, n.CapacityType, n.Price, n.Pods)
			}
			fmt.Fprintf(&got, "%v; ", r.ExistingPods["old"])
			for name := range r.Unscheduled {
				got.WriteString(name)
			}
			if got.String() != c.want {
				t.Errorf("got plan %q, want %q", got.String(), c.want)
			}
			check(t, text, r)
		})
	}
}

// A launch lists no exotic types, and no spot offering above the on-demand price.
func TestLaunchOptions(t *testing.T) {
	text := fmt.Sprintf(`{"name": "s", "instanceTypes": %s, "nodePools": [%s], "pods": [%s]}`, machines, pool("a", ""), pod("p", "1", ""))
	if n := plan(t, text, karpenterbaseline.Options{Concurrency: 1}).NewNodes[0]; n.Options != 2 || strings.Join(n.OptionTypes, " ") != "small large" {
		t.Errorf("got %d options %v, want small and large", n.Options, n.OptionTypes)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func plan(t *testing.T, text string, o karpenterbaseline.Options) *karpenterbaseline.Result {
	t.Helper()
	s, err := karpenterbaseline.Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := karpenterbaseline.Plan(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check validates the plan as it is written.
func check(t *testing.T, text string, r *karpenterbaseline.Result) {
	t.Helper()
	s, err := planvalidator.ParseScenario([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	read, err := planvalidator.ParseResult(written)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range planvalidator.CheckPlan(s, read) {
		t.Error(v)
	}
}

// Pods that are not placed before the timeout have no node, and the plan records that.
func TestPlanTimesOut(t *testing.T) {
	text := fmt.Sprintf(`{"name": "s", "instanceTypes": %s, "nodePools": [%s], "podGroups": [{"count": 9, "template": %s}]}`, machines, pool("a", ""), pod("p", "1", ""))
	r := plan(t, text, karpenterbaseline.Options{Concurrency: 1, Timeout: time.Nanosecond})
	if !r.Summary.TimedOut || r.Summary.Unscheduled != 9 || r.Summary.Scheduled != 0 {
		t.Errorf("got summary %+v, want nine unscheduled pods", r.Summary)
	}
	check(t, text, r)
	if r := plan(t, text, karpenterbaseline.Options{Concurrency: 1, Timeout: time.Hour}); r.Summary.TimedOut || r.Summary.Scheduled != 9 {
		t.Errorf("got summary %+v, want nine scheduled pods", r.Summary)
	}
}

// Only solving is measured.
func TestEffortOfSolving(t *testing.T) {
	text := fmt.Sprintf(`{"name": "s", "instanceTypes": %s, "nodePools": [%s], "podGroups": [{"count": 200, "template": %s}]}`, machines, pool("a", ""), pod("p", "1", ""))
	e := plan(t, text, karpenterbaseline.Options{Concurrency: 1}).Summary.Effort
	if e.SetupWallS <= 0 || e.SolveWallS <= 0 || e.SolveMallocs == 0 || e.SolveAllocMB <= 0 || e.PeakRSSMB <= 0 {
		t.Errorf("effort %+v is incomplete", e)
	}
}

func TestReadAndPlanErrors(t *testing.T) {
	if _, err := karpenterbaseline.Read("none.json"); err == nil {
		t.Error("a missing file was read")
	}
	s, err := karpenterbaseline.Parse([]byte(`{"nodes": [{"name": "old", "instanceType": "none"}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := karpenterbaseline.Plan(t.Context(), s, karpenterbaseline.Options{Concurrency: 1}); err == nil || !strings.Contains(err.Error(), "old") {
		t.Errorf("got error %v, want one about the node", err)
	}
}
