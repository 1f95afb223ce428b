package solver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const partitionKey = karpenter.LabelPlacementGroupPartition

// withGroup makes the batch's node class select a placement group of the strategy, and returns the catalogue that has it.
func withGroup(batch *planning.Batch, strategy string, partitions int64) catalog.Catalogue {
	cat := planningtest.NewCatalogue()
	cat.PlacementGroups = []catalog.PlacementGroup{{ID: "pg-1", Name: "racks", Strategy: strategy, Partitions: partitions}}
	batch.Snapshot.NodeClasses[0].Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("racks")}
	return cat
}

// needing adds a required node affinity for the partition.
func needing(operator corev1.NodeSelectorOperator, values ...string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: partitionKey, Operator: operator, Values: values}}}
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
	}
}

// describePartitions returns what each planned node requires of its partition, and its pods; then how many pods are unplaced.
func describePartitions(result planning.Result) []string {
	var out []string
	for _, n := range result.Nodes {
		partition := "not required"
		if values, stated := n.Requirements[partitionKey]; stated {
			partition = values.String()
		}
		var pods []string
		for _, p := range n.Pods {
			pods = append(pods, p.Pod.Name)
		}
		slices.Sort(pods)
		out = append(out, partition+": "+strings.Join(pods, " "))
	}
	slices.Sort(out)
	if left := count(result.Unplaced); left > 0 {
		out = append(out, fmt.Sprintf("%d unplaced", left))
	}
	return out
}

// TestPlacementGroupPartitions plans pods that ask for partitions of the node class's placement group. The class's group has three
// partitions unless the case has another strategy.
func TestPlacementGroupPartitions(t *testing.T) {
	db := requireLabels("app", "db")
	half := func(name string, count int, edits ...func(*planning.PodSpec)) planning.PodClass {
		return planningtest.NewPods(name, count, "500m", "100Mi", edits...)
	}
	with := func(edits ...func(*planning.PodSpec)) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) {
			for _, edit := range edits {
				edit(s)
			}
		}
	}
	partition := func(values ...string) func(*karpenter.NodePool) {
		return func(p *karpenter.NodePool) { requirePoolLabel(p, partitionKey, karpenter.NodeSelectorOpIn, values...) }
	}
	second := selecting(partitionKey, "2")
	toDB := corev1.PodAffinityTerm{TopologyKey: partitionKey, LabelSelector: selector("app", "db")}
	for _, tt := range []struct {
		name     string
		pods     []planning.PodClass
		pool     func(*karpenter.NodePool)
		strategy string
		want     []string
	}{
		{"no pod asks for a partition", []planning.PodClass{half("web", 2)}, nil, "", []string{"not required: web-0 web-1"}},
		{"a pod selects a partition", []planning.PodClass{half("web", 1, second)}, nil, "", []string{"In [2]: web-0"}},
		{"pods select two partitions", []planning.PodClass{half("a", 1, second), half("b", 1, selecting(partitionKey, "3"))}, nil, "",
			[]string{"In [2]: a-0", "In [3]: b-0"}},
		{"a pod selects a partition that the group does not have", []planning.PodClass{half("web", 1, selecting(partitionKey, "4"))}, nil, "", []string{"1 unplaced"}},
		{"another pod shares the node", []planning.PodClass{half("a", 1, second), planningtest.NewPods("b", 1, "100m", "64Mi")}, nil, "",
			[]string{"In [2]: a-0 b-0"}},
		{"another pod needs a node of its own", []planning.PodClass{half("a", 1, second), planningtest.NewPods("b", 1, "3500m", "8Gi")}, nil, "",
			[]string{"In [2]: a-0", "not required: b-0"}},
		{"a pod needs any partition", []planning.PodClass{half("web", 1, needing(corev1.NodeSelectorOpExists))}, nil, "", []string{"Exists: web-0"}},
		{"a pod excludes a partition", []planning.PodClass{half("web", 1, needing(corev1.NodeSelectorOpNotIn, "1"))}, nil, "", []string{"In [2]: web-0"}},
		{"a pod needs no partition", []planning.PodClass{half("web", 1, needing(corev1.NodeSelectorOpDoesNotExist))}, nil, "", []string{"1 unplaced"}},
		{"spread over partitions", []planning.PodClass{half("db", 3, with(db, spreads(partitionKey, 1)))}, nil, "",
			[]string{"In [1]: db-0", "In [2]: db-1", "In [3]: db-2"}},
		{"spread over partitions with a selector of one zone and capacity type",
			[]planning.PodClass{half("db", 3, with(db, spreads(partitionKey, 1), func(s *planning.PodSpec) {
				s.NodeSelector = map[string]string{zoneKey: "ap-northeast-2a", karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeOnDemand}
			}))}, nil, "", []string{"In [1]: db-0", "In [2]: db-1", "In [3]: db-2"}},
		{"anti-affinity over partitions", []planning.PodClass{half("db", 4, with(db, averse(toDB)))}, nil, "",
			[]string{"In [1]: db-0", "In [2]: db-1", "In [3]: db-2", "1 unplaced"}},
		{"affinity over partitions", []planning.PodClass{planningtest.NewPods("db", 2, "3500m", "1Gi", db, affine(toDB))}, nil, "",
			[]string{"In [1]: db-0", "In [1]: db-1"}},
		{"a pod that a spread of one partition counts", []planning.PodClass{
			half("open", 1, with(db, selecting(zoneKey, "ap-northeast-2a"))),
			planningtest.NewPods("first", 1, "3500m", "1Gi", with(db, spreads(zoneKey, 1)), func(s *planning.PodSpec) { s.NodeSelector = map[string]string{partitionKey: "1"} }),
		}, nil, "", []string{"In [1]: first-0", "In [1]: open-0"}},
		{"the NodePool allows some partitions", []planning.PodClass{half("web", 1)}, partition("2", "3"), "", []string{"In [2 3]: web-0"}},
		{"the NodePool allows some partitions and a pod selects one", []planning.PodClass{half("web", 1, selecting(partitionKey, "3"))}, partition("2", "3"), "", []string{"In [3]: web-0"}},
		{"the NodePool allows all partitions", []planning.PodClass{half("web", 1)}, partition("1", "2", "3", "4"), "", []string{"not required: web-0"}},
		{"the NodePool allows other partitions only", []planning.PodClass{half("web", 1)}, partition("4", "5"), "", []string{"1 unplaced"}},
		{"the template sets the partition", []planning.PodClass{half("web", 1)}, func(p *karpenter.NodePool) {
			p.Spec.Template.Labels = map[string]string{partitionKey: "3"}
		}, "", []string{"In [3]: web-0"}},
		{"a group without partitions", []planning.PodClass{half("a", 1), half("b", 1, second), half("c", 1, needing(corev1.NodeSelectorOpDoesNotExist))}, nil, catalog.SpreadStrategy,
			[]string{"DoesNotExist: a-0 c-0", "1 unplaced"}},
		{"the NodePool allows partitions of a group without them", []planning.PodClass{half("web", 1)}, partition("1"), catalog.SpreadStrategy, []string{"1 unplaced"}},
		{"the NodePool excludes a partition of a group without them", []planning.PodClass{half("a", 1), half("b", 1, selecting(partitionKey, "3"))}, func(p *karpenter.NodePool) {
			requirePoolLabel(p, partitionKey, karpenter.NodeSelectorOpNotIn, "2")
		}, catalog.SpreadStrategy, []string{"not required: a-0", "1 unplaced"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(tt.pods...)
			batch.Snapshot.NodePools[0].Spec.Limits = nil
			strategy, partitions := tt.strategy, int64(0)
			if strategy == "" {
				strategy, partitions = catalog.PartitionStrategy, 3
			}
			cat := withGroup(&batch, strategy, partitions)
			if tt.pool != nil {
				tt.pool(&batch.Snapshot.NodePools[0])
			}
			result := solver.Solve(batch, cat)
			if diff := cmp.Diff(tt.want, describePartitions(result)); diff != "" {
				t.Error(diff)
			}
			if err := planningtest.CheckResult(batch, cat, result); err != nil {
				t.Errorf("invalid plan:\n%v", err)
			}
		})
	}
}

// TestPartitionsAndDaemons plans a large pod that asks for no partition, while another pod selects one. EC2 chooses the partition of its
// node, unless the node's daemons depend on the partition: the planned node has no capacity for them in the third one.
func TestPartitionsAndDaemons(t *testing.T) {
	for want, edit := range map[string]func(*planning.PodSpec){
		"not required: large-0": func(*planning.PodSpec) {},
		"In [1]: large-0":       selecting(partitionKey, "3"),
	} {
		batch := planningtest.NewBatch(planningtest.NewPods("second", 1, "500m", "100Mi", selecting(partitionKey, "2")), planningtest.NewPods("large", 1, "3500m", "1Gi"))
		batch.Snapshot.DaemonSets = []planning.PodSpec{planningtest.NewPods("agent", 1, "100m", "64Mi", edit).Spec}
		cat := withGroup(&batch, catalog.PartitionStrategy, 3)
		result := solver.Solve(batch, cat)
		if got := describePartitions(result); !slices.Contains(got, want) {
			t.Errorf("%q, want %s", got, want)
		}
		if err := planningtest.CheckResult(batch, cat, result); err != nil {
			t.Errorf("invalid plan:\n%v", err)
		}
	}
}

// TestPartitionsOfExistingNodes plans a pod of an app that spreads over three partitions, whose other pods run on existing nodes. EC2 chose
// the partition of a node with an empty label, and lifecycle does not know it yet.
func TestPartitionsOfExistingNodes(t *testing.T) {
	db := func(name string, edits ...func(*planning.PodSpec)) planning.PodClass {
		return planningtest.NewPods(name, 1, "500m", "100Mi", append(edits, requireLabels("app", "db"), spreads(partitionKey, 1))...)
	}
	labeled := func(name, partition string, edits ...func(*planning.Node)) planning.Node {
		return node(name, append(edits, func(n *planning.Node) { n.Labels[partitionKey] = partition })...)
	}
	for _, tt := range []struct {
		name    string
		nodes   []planning.Node
		pending planning.PodClass
		onto    map[string]int
		want    []string
	}{
		{"a pod runs in each of two partitions", []planning.Node{labeled("a", "1", running(db("x"))), labeled("b", "3", running(db("y")))}, db("new"), nil, []string{"In [2]: new-0"}},
		{"the third partition has a node", []planning.Node{labeled("a", "1", running(db("x"))), labeled("b", "3", running(db("y"))), labeled("c", "2")}, db("new"),
			map[string]int{"cc": 1}, nil},
		{"an unknown partition is no domain", []planning.Node{labeled("a", "1", running(db("x"))), labeled("b", "2", running(db("y"))), labeled("c", "")}, db("new"),
			nil, []string{"In [3]: new-0"}},
		{"an unknown partition may be an excluded one", []planning.Node{labeled("a", "")}, planningtest.NewPods("new", 1, "500m", "100Mi", needing(corev1.NodeSelectorOpNotIn, "1")),
			nil, []string{"In [2]: new-0"}},
		{"an unknown partition is a partition", []planning.Node{labeled("a", "")}, planningtest.NewPods("new", 1, "500m", "100Mi", needing(corev1.NodeSelectorOpExists)),
			map[string]int{"aa": 1}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(tt.pending)
			batch.Snapshot.Nodes = tt.nodes
			cat := withGroup(&batch, catalog.PartitionStrategy, 3)
			result := solver.Solve(batch, cat)
			if diff := cmp.Diff(tt.want, describePartitions(result)); diff != "" {
				t.Error(diff)
			}
			onto, _ := placed(result)
			if diff := cmp.Diff(tt.onto, onto); diff != "" && len(onto)+len(tt.onto) > 0 {
				t.Error(diff)
			}
			if err := planningtest.CheckResult(batch, cat, result); err != nil {
				t.Errorf("invalid plan:\n%v", err)
			}
		})
	}
}

// TestPartitionsOfReplacements removes a node whose pod selects a partition, and one whose pod does not. The replacement of the first one is
// in the same partition.
func TestPartitionsOfReplacements(t *testing.T) {
	for want, edits := range map[string][]func(*planning.PodSpec){"In [3]": {selecting(partitionKey, "3")}, "not required": nil} {
		batch := planningtest.NewBatch()
		cat := withGroup(&batch, catalog.PartitionStrategy, 3)
		batch.Snapshot.Nodes = []planning.Node{node("old", func(n *planning.Node) { n.Labels[partitionKey] = "3" }, running(planningtest.NewPods("db", 1, "500m", "100Mi", edits...)))}
		result := solver.NewSimulation(batch.Snapshot, instancetypes.New(batch.Snapshot, cat)).SimulateRemoval(0)
		if diff := cmp.Diff([]string{want + ": db-0"}, describePartitions(result)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestPartitionsOfNodesWithoutPods plans the nodes of a static pool, and of a NodeClaim that a user created.
func TestPartitionsOfNodesWithoutPods(t *testing.T) {
	for _, tt := range []struct {
		name    string
		allowed []string
		want    string
	}{
		{"none asked for", nil, "not required"},
		{"some asked for", []string{"2", "3"}, "In [2 3]"},
		{"one that the group does not have", []string{"4"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planning.Batch{Snapshot: planningtest.NewBatch().Snapshot}
			cat := withGroup(&batch, catalog.PartitionStrategy, 3)
			pool, claim := staticPool("static", "t4g"), handmade()
			if tt.allowed != nil {
				requirePoolLabel(&pool, partitionKey, karpenter.NodeSelectorOpIn, tt.allowed...)
				claim.Spec.Requirements = append(claim.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: partitionKey, Operator: karpenter.NodeSelectorOpIn, Values: tt.allowed})
			}
			batch.Snapshot.NodePools, batch.Snapshot.Settings.Gates.StaticCapacity = []karpenter.NodePool{pool}, true
			var want []string
			if tt.want != "" {
				want = []string{tt.want + ": "}
			}
			if diff := cmp.Diff(want, describePartitions(solver.Solve(batch, cat))); diff != "" {
				t.Errorf("static pool: %s", diff)
			}
			own := solver.NewPoolFromClaim(claim)
			planned, err := solver.PlanNode(&own, nil, batch.Snapshot, cat)
			if (err == nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), partitionKey) {
				t.Fatal(err)
			}
			if err == nil {
				if diff := cmp.Diff(want, describePartitions(planning.Result{Nodes: []planning.PlannedNode{planned}})); diff != "" {
					t.Errorf("NodeClaim: %s", diff)
				}
			}
		})
	}
}

// TestPartitionsInExplanations explains the types of a NodePool that allows only partitions that its group does not have, and a pod that
// selects such a partition.
func TestPartitionsInExplanations(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "500m", "100Mi", selecting(partitionKey, "4")))
	cat := withGroup(&batch, catalog.PartitionStrategy, 3)
	got := solver.ExplainPools(batch, instancetypes.New(batch.Snapshot, cat), batch.Pending[0])[0]
	if want := partitionKey + ": the pod needs In [4], the pool allows In [1 2 3]"; got.Rejection.Detail != want || got.Key != partitionKey {
		t.Errorf("the NodePool rejects the pod for %q: %s, want %s", got.Key, got.Rejection.Detail, want)
	}
	requirePoolLabel(&batch.Snapshot.NodePools[0], partitionKey, karpenter.NodeSelectorOpIn, "4")
	got = solver.ExplainPools(batch, instancetypes.New(batch.Snapshot, cat), batch.Pending[0])[0]
	i := slices.IndexFunc(got.Types, func(one solver.TypeExplanation) bool { return one.InstanceType == "t4g.large" })
	if one := got.Types[i]; one.Rule != solver.TypePoolRequirements || one.Key != partitionKey {
		t.Errorf("%s is excluded by %s of %q, want %s of %q", one.InstanceType, one.Rule, one.Key, solver.TypePoolRequirements, partitionKey)
	}
}

// TestPlansWithPartitionsAreValid checks plans for batches whose pods, daemons and NodePools ask for partitions, with each partition that
// EC2 may choose.
func TestPlansWithPartitionsAreValid(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) planning.Batch {
		batch := genBatch(t)
		batch.Snapshot.Settings.PriceLimit = nil
		for i := range batch.Pending {
			spec := &batch.Pending[i].Spec
			rapid.SampledFrom([]func(*planning.PodSpec){
				func(*planning.PodSpec) {},
				selecting(partitionKey, "2"), needing(corev1.NodeSelectorOpNotIn, "1"), needing(corev1.NodeSelectorOpIn, "2", "3"), needing(corev1.NodeSelectorOpExists),
				spreads(partitionKey, 1), apartOver(partitionKey, "shared"), besideOver(partitionKey, spec.Labels["app"]), spreadIn(zoneKey, "shared"),
			}).Draw(t, "partition of pods")(spec)
		}
		for i := range batch.Snapshot.DaemonSets {
			rapid.SampledFrom([]func(*planning.PodSpec){func(*planning.PodSpec) {}, selecting(partitionKey, "3")}).Draw(t, "partition of daemons")(&batch.Snapshot.DaemonSets[i])
		}
		for i := range batch.Snapshot.NodePools {
			if values := rapid.SampledFrom([][]string{nil, nil, {"1", "2"}, {"3"}, {"1", "2", "3"}}).Draw(t, "partitions of pool"); values != nil {
				requirePoolLabel(&batch.Snapshot.NodePools[i], partitionKey, karpenter.NodeSelectorOpIn, values...)
			}
		}
		for i := range batch.Snapshot.Nodes {
			batch.Snapshot.Nodes[i].Labels[partitionKey] = rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "partition of node")
		}
		return batch
	})
	for seed := range 100 {
		batch := gen.Example(seed)
		cat := withGroup(&batch, catalog.PartitionStrategy, 3)
		result := solver.Solve(batch, cat)
		if err := planningtest.CheckResult(batch, cat, result); err != nil {
			t.Errorf("batch %d: invalid plan:\n%v", seed, err)
		}
	}
}
