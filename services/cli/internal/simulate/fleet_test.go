package simulate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// sparseScenario returns nodes that are half empty.
func sparseScenario(t *testing.T) *scenario.Scenario {
	t.Helper()
	var nodes []string
	for i := range 9 {
		kind, cpu := []string{"large", "small"}[i%2], []string{"500m", "1", "1500m"}[i%3]
		nodes = append(nodes, fmt.Sprintf(`{"name": "node-%d", "nodePool": "pool", "instanceType": "%s", "zone": "z%d", "capacityType": "on-demand", "pods": [
			{"metadata": {"name": "pod-%d"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "%s"}}}]}}]}`, i, kind, 1+i%2, i, cpu))
	}
	machine := func(name string, cpu int, price float64) string {
		return fmt.Sprintf(`{"name": "%s", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "%d", "memory": "16Gi", "pods": "20"},
			"offerings": [{"zone": "z1", "capacityType": "on-demand", "price": %g, "available": true}, {"zone": "z2", "capacityType": "on-demand", "price": %g, "available": true}]}`, name, cpu, price, price)
	}
	text := fmt.Sprintf(`{"name": "sparse", "instanceTypes": [%s, %s], "nodes": [%s], "nodePools": [{"metadata": {"name": "pool"}, "spec": {
		"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "3"}]},
		"template": {"spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}}]}`,
		machine("large", 8, 0.4), machine("small", 2, 0.11), strings.Join(nodes, ", "))
	s, err := scenario.Parse(nil, "sparse.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// TestConsolidateScenario: the rounds add up to the final nodes.
func TestConsolidateScenario(t *testing.T) {
	source := simulate.SourceFromScenario(sparseScenario(t))
	f := source.Fleet()
	before, nodes := f.CostPerHour(), f.Size()
	out, err := simulate.Consolidate(f, newOptions())
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Rounds) == 0 || !out.Complete || out.CostBefore != before || out.Nodes != nodes || out.CostAfter >= before || math.Abs(out.CostAfter-f.CostPerHour()) > 1e-9 {
		t.Errorf("%d nodes at %g became %d at %g after %d rounds, but cost %g", nodes, before, f.Size(), out.CostAfter, len(out.Rounds), f.CostPerHour())
	}
	if diff := cmp.Diff(podNames(source.Fleet().FinalNodes()), podNames(out.FinalNodes)); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// podNames returns the sorted names of the pods of all nodes.
func podNames(nodes []scenario.FinalNode) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Pods...)
	}
	slices.Sort(out)
	return out
}

// TestConsolidateKeepsEveryPod: no pod is lost, and the costs of the rounds add up.
func TestConsolidateKeepsEveryPod(t *testing.T) {
	for seed := range uint64(3) {
		s := planningtest.GenerateCluster(rand.New(rand.NewPCG(seed, 7)), 20, 100)
		s.NodePools[0].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "20%"}}
		source := simulate.SourceFromCatalogue(s, planningtest.NewCatalogue())
		f := source.FleetOf(s)
		before := podNames(f.FinalNodes())
		played, err := simulate.Consolidate(f, newOptions())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, podNames(played.FinalNodes)); diff != "" || len(played.Rounds) == 0 || !played.Complete {
			t.Errorf("seed %d: %d rounds, complete %v (-before +after):\n%s", seed, len(played.Rounds), played.Complete, diff)
		}
		if last := played.Rounds[len(played.Rounds)-1].CostAfter; math.Abs(last-f.CostPerHour()) > 1e-9 || last >= played.CostBefore {
			t.Errorf("seed %d: the last round has the cost %.6f, the nodes cost %.6f, before %.6f", seed, last, f.CostPerHour(), played.CostBefore)
		}
		names := map[string]bool{}
		for _, n := range played.FinalNodes {
			if names[n.Name] || n.InstanceType == "" || n.Zone == "" || n.CapacityType == "" {
				t.Errorf("seed %d: node %+v", seed, n)
			}
			names[n.Name] = true
		}
		for _, r := range played.Rounds {
			for _, n := range r.Replacements {
				if n.Name == "" || n.Price <= 0 || n.Options == 0 {
					t.Errorf("seed %d: replacement %+v", seed, n)
				}
			}
		}
	}
}

// TestFleetFinishesWhatIsInFlight: operations in progress are completed first, and listed in a
// note.
func TestFleetFinishesWhatIsInFlight(t *testing.T) {
	s := planningtest.GenerateCluster(rand.New(rand.NewPCG(1, 1)), 10, 40)
	s.Nodes[0].MarkedForDeletion = true
	s.Nodes[1].Proposal = &planning.Proposal{ID: "p", Reason: "Underutilized", ProposedAt: s.TakenAt, ConfirmedAt: s.TakenAt}
	s.Nodes[2].Proposal = &planning.Proposal{ID: "q", Reason: "Underutilized", ProposedAt: s.TakenAt}
	s.Nodes[3].NominatedUntil, s.Nodes[3].LastPodEvent = s.TakenAt.Add(time.Hour), s.TakenAt
	s.Nodes[4].Initialized, s.Nodes[4].Ready, s.Nodes[4].InitializedAt, s.Nodes[4].ExpectedPods = false, false, time.Time{}, []string{"lost"}
	s.PendingPods = []planning.PodClass{planningtest.NewPods("new", 2, "1", "1Gi"), planningtest.NewPods("huge", 1, "4000", "1Gi")}
	source := simulate.SourceFromCatalogue(s, planningtest.NewCatalogue())
	f := source.FleetOf(s)
	shown, _ := f.Snapshot()
	for _, n := range shown.Nodes {
		if n.Name == s.Nodes[0].Name || n.Name == s.Nodes[1].Name {
			t.Errorf("%s is still there", n.Name)
		}
		if n.Proposal != nil || n.NominatedUntil.After(s.TakenAt) || !n.LastPodEvent.Before(s.TakenAt.Add(-day)) {
			t.Errorf("%s has an operation in progress: %+v", n.Name, n.Proposal)
		}
		if !n.Initialized || !n.Ready || n.InitializedAt.IsZero() || len(n.ExpectedPods) > 0 {
			t.Errorf("%s still boots", n.Name)
		}
	}
	total := 0
	for i := range s.Nodes {
		for _, class := range s.Nodes[i].Pods {
			total += len(class.Pods)
		}
	}
	if got := len(podNames(f.FinalNodes())); got != total+2 {
		t.Errorf("%d pods run, want %d and two pending ones", got, total)
	}
	if len(f.Unscheduled()) != 1 || !strings.Contains(fmt.Sprint(f.Unscheduled()), "huge") {
		t.Errorf("unschedulable: %v", f.Unscheduled())
	}
	if notes := strings.Join(f.Notes(), "\n"); !strings.Contains(notes, "2 nodes being removed, 3 pending pods") {
		t.Errorf("notes: %s", notes)
	}
	if !s.Nodes[0].MarkedForDeletion || s.Nodes[2].Proposal == nil {
		t.Error("the snapshot itself was changed")
	}
}

const day = 24 * time.Hour
