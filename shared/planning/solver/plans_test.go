package solver_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

var update = flag.Bool("update", false, "write the golden files of plans")

// TestPlansOfRandomClusters compares the plans for fixed random batches and removals with a golden file. Other tests
// check that plans are valid; this one shows which plans a change of the solver changes, so that its author can say
// whether they got better.
func TestPlansOfRandomClusters(t *testing.T) {
	cat, out := planningtest.NewCatalogue(), &strings.Builder{}
	for seed := range 150 {
		batch := rapid.Custom(genBatch).Example(seed)
		fmt.Fprintf(out, "batch %d: %s", seed, summarizePlan(solver.Solve(batch, cat)))
	}
	for seed := range 200 {
		batch := rapid.Custom(genTopologyBatch).Example(seed)
		fmt.Fprintf(out, "topology %d: %s", seed, summarizePlan(solver.Solve(batch, cat)))
	}
	for seed := range 60 {
		snapshot := rapid.Custom(genCluster).Example(seed)
		describeRemovals(out, fmt.Sprint("removal ", seed), snapshot, instancetypes.New(snapshot, cat))
	}
	for seed := range 3 {
		snapshot := planningtest.GenerateCluster(rand.New(rand.NewPCG(uint64(seed), 0)), 12, 150)
		describeRemovals(out, fmt.Sprint("generated cluster ", seed), snapshot, instancetypes.New(snapshot, cat))
	}
	comparePlans(t, "testdata/plans.golden", out.String())
}

// comparePlans compares described plans with a golden file.
func comparePlans(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("plans changed; if they are as good as before, run go test ./planning/solver -run %s -update:\n%s", t.Name(), diff)
	}
}

// genTopologyBatch returns a batch of pods with rules over domains, such as zones, in a cluster with running pods. Most of
// its pools have no limits, and some have minValues.
func genTopologyBatch(t *rapid.T) planning.Batch {
	batch := planning.Batch{Snapshot: genCluster(t)}
	for i := range rapid.IntRange(1, 5).Draw(t, "pending classes") {
		batch.Pending = append(batch.Pending, genRunning(t, fmt.Sprint("w", i)))
	}
	batch.Snapshot.Settings.PriceLimit = nil
	batch.Snapshot.Settings.MinValuesPolicy = rapid.SampledFrom([]string{"Strict", "BestEffort"}).Draw(t, "minValues policy")
	for i := range batch.Snapshot.NodePools {
		pool := &batch.Snapshot.NodePools[i]
		pool.Annotations = nil
		if rapid.IntRange(0, 3).Draw(t, "limits") > 0 {
			pool.Spec.Limits = nil
		}
		if n := rapid.IntRange(0, 3).Draw(t, "minValues"); n > 1 {
			pool.Spec.Template.Spec.Requirements[0].MinValues = &n
		}
		pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{
			Key: "rack", Operator: karpenter.NodeSelectorOpIn, Values: []string{"r1", "r2"},
		})
	}
	return batch
}

// describeRemovals describes the plans for the removal of each node alone, and then of one after the other, each of
// which is committed if all pods are placed.
func describeRemovals(out *strings.Builder, name string, snapshot planning.Snapshot, stock instancetypes.InstanceTypes) {
	simulation := solver.NewSimulation(snapshot, stock)
	for i := range snapshot.Nodes {
		fmt.Fprintf(out, "%s of %s: %s", name, snapshot.Nodes[i].Name, summarizePlan(simulation.SimulateRemoval(i)))
	}
	for i := range snapshot.Nodes {
		result := simulation.SimulateRemoval(i)
		if len(result.Unplaced) == 0 && !result.Partial {
			simulation.Commit(result, i)
		}
		fmt.Fprintf(out, "%s of %s after the others: %s", name, snapshot.Nodes[i].Name, summarizePlan(result))
	}
}

// summarizePlan describes a plan: its price, its new nodes with their offerings and pods, pods on existing nodes, and
// why pods are unplaced.
func summarizePlan(r planning.Result) string {
	var lines []string
	for _, n := range r.Nodes {
		types, zones, capacityTypes := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, o := range n.Offerings {
			types[o.InstanceType], zones[o.Zone[len(o.Zone)-1:]], capacityTypes[o.CapacityType] = true, true, true
		}
		lines = append(lines, fmt.Sprintf("new node of %s, %d types from %s, zones %s, %s, requests %s: %s", n.NodePool, len(types), n.Offerings[0].InstanceType,
			joinKeys(zones), joinKeys(capacityTypes), describeRequests(n), countPods(n.Pods)))
	}
	existing := map[string][]planning.PlacedPod{}
	for _, n := range r.Nominations {
		on := cmp.Or(n.Claim, n.Node)
		existing[on] = append(existing[on], planning.PlacedPod{Namespace: n.Namespace, Pod: n.Pod})
	}
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		lines = append(lines, fmt.Sprintf("%s: %s", name, countPods(existing[name])))
	}
	for _, u := range r.Unplaced {
		why := map[string]bool{}
		for _, rejection := range u.Rejections {
			why[rejection.Rule+": "+rejection.Detail] = true
		}
		lines = append(lines, fmt.Sprintf("unplaced %s %d: %s", u.Pods[0].Name, len(u.Pods), strings.Join(slices.Sorted(maps.Keys(why)), "; ")))
	}
	return fmt.Sprintf("$%.4f\n%s", r.PricePerHour, joinEqual(lines))
}

// joinEqual joins the lines, with the number of equal ones after each other.
func joinEqual(lines []string) string {
	var out strings.Builder
	for len(lines) > 0 {
		n := max(1, slices.IndexFunc(append(slices.Clone(lines), ""), func(line string) bool { return line != lines[0] }))
		fmt.Fprintf(&out, "  %d × %s\n", n, lines[0])
		lines = lines[n:]
	}
	return strings.ReplaceAll(out.String(), "  1 × ", "  ")
}

func describeRequests(n planning.PlannedNode) string { return describeAmounts(n.Requests) }

func describeAmounts(list corev1.ResourceList) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		out = append(out, fmt.Sprintf("%s=%s", name, quantity.String()))
	}
	return strings.Join(out, ",")
}

// countPods counts the pods by workload, which is their name up to its last hyphen.
func countPods(pods []planning.PlacedPod) string {
	counts := map[string]int{}
	for _, p := range pods {
		name := p.Pod.Name
		if at := strings.LastIndex(name, "-"); at > 0 {
			name = name[:at]
		}
		counts[name]++
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(out, ", ")
}

func joinKeys(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), " ") }
