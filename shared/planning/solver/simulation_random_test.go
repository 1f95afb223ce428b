package solver_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// genRunning returns a class like genClass's, some with rules over wider domains.
func genRunning(t *rapid.T, name string) planning.PodClass {
	class := genClass(t, name)
	spec := &class.Spec
	spec.OwnerKind = rapid.SampledFrom([]string{"ReplicaSet", "StatefulSet"}).Draw(t, "owner")
	app := rapid.SampledFrom([]string{"web", "db", "cache"}).Draw(t, "app")
	if spec.Labels == nil && rapid.Bool().Draw(t, "labelled") {
		spec.Labels = map[string]string{"app": app}
	}
	other := map[string]string{"app": rapid.SampledFrom([]string{"web", "db", "cache"}).Draw(t, "other")}
	key := rapid.SampledFrom([]string{corev1.LabelTopologyZone, corev1.LabelHostname, karpenter.CapacityTypeLabelKey, "rack"}).Draw(t, "key")
	switch rapid.IntRange(0, 9).Draw(t, "wide rule") {
	case 0:
		spec.Spread = spreadOver(key, other)
	case 1:
		spec.Spread = spreadOver(key, other)
		spec.Spread[0].WhenUnsatisfiable = corev1.ScheduleAnyway
	case 2:
		honour := corev1.NodeInclusionPolicyHonor
		spec.Spread = spreadOver(key, other)
		spec.Spread[0].NodeTaintsPolicy = &honour
	case 3:
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(key, other)}}
	case 4:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(key, other)}}
	case 5:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: terms(key, other)[0]},
		}}}
	case 6:
		spec.Volumes = []planning.Volume{{Driver: "ebs.csi.aws.com", Alternatives: []corev1.NodeSelectorTerm{topologyTerm(corev1.LabelTopologyZone, "ap-northeast-2a")}}}
	}
	return class
}

// genNode returns a node with pods of the classes.
func genNode(t *rapid.T, name string, classes []planning.PodClass, ran *int) planning.Node {
	return node(name, func(n *planning.Node) {
		n.NodePool = "p0"
		n.Labels[corev1.LabelTopologyZone] = rapid.SampledFrom([]string{"ap-northeast-2a", "ap-northeast-2b", "ap-northeast-2c"}).Draw(t, "zone")
		n.Labels[karpenter.CapacityTypeLabelKey] = rapid.SampledFrom([]string{"spot", "on-demand"}).Draw(t, "capacity type")
		n.Labels["team"] = rapid.SampledFrom([]string{"shop", "web"}).Draw(t, "team")
		if rapid.Bool().Draw(t, "racked") {
			n.Labels["rack"] = rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "rack")
		}
		n.Allocatable[corev1.ResourceCPU] = resource.MustParse(rapid.SampledFrom([]string{"2", "4", "8"}).Draw(t, "cpu"))
		n.Allocatable[corev1.ResourceMemory] = resource.MustParse("16Gi")
		n.Taints = rapid.SampledFrom([][]corev1.Taint{nil, nil, nil, randomTaints[:1], randomTaints[2:]}).Draw(t, "node taints")
		switch rapid.IntRange(0, 9).Draw(t, "state") {
		case 0:
			n.Initialized = false
		case 1:
			n.Ready = false
		case 2:
			n.Launched, n.Registered, n.Initialized, n.Ready = false, false, false, false
		case 3:
			n.DaemonPods = []planning.PodClass{rapid.SampledFrom(classes).Draw(t, "daemon")}
			n.DaemonPods[0].Pods = n.DaemonPods[0].Pods[:1]
		}
		n.PricePerHour = rapid.SampledFrom([]float64{0.02, 0.02, 0.05, 0.3, 0}).Draw(t, "price")
		used := corev1.ResourceList{}
		for range rapid.IntRange(0, 3).Draw(t, "residents") {
			class := rapid.SampledFrom(classes).Draw(t, "class")
			one := planning.PodClass{Spec: class.Spec}
			for range rapid.IntRange(1, 3).Draw(t, "pods") {
				*ran++
				one.Pods = append(one.Pods, planning.PodRef{Name: fmt.Sprint("r", *ran), UID: fmt.Sprint("r", *ran), Created: planningtest.Now, Terminating: rapid.IntRange(0, 9).Draw(t, "pod goes") == 0})
				for name, quantity := range class.Spec.Requests {
					sum := used[name]
					sum.Add(quantity)
					used[name] = sum
				}
			}
			n.HostPorts = append(n.HostPorts, class.Spec.HostPorts...)
			n.Pods = append(n.Pods, one)
		}
		n.Used = used
	})
}

func genCluster(t *rapid.T) planning.Snapshot { return genClusterOf(t, genRunning) }

// genClusterOf returns a cluster with running pods of generated classes.
func genClusterOf(t *rapid.T, genClass func(*rapid.T, string) planning.PodClass) planning.Snapshot {
	snapshot := genBatch(t).Snapshot
	status := &snapshot.NodeClasses[0].Status
	status.Subnets = append(status.Subnets, karpenter.Subnet{ID: "subnet-0b", Zone: "ap-northeast-2b", ZoneID: "apne2-az2"})
	var classes []planning.PodClass
	for i := range rapid.IntRange(1, 5).Draw(t, "running classes") {
		classes = append(classes, genClass(t, fmt.Sprint("r", i)))
	}
	snapshot.Nodes, snapshot.PendingPods = nil, nil
	ran := 0
	for i := range rapid.IntRange(1, 8).Draw(t, "running nodes") {
		snapshot.Nodes = append(snapshot.Nodes, genNode(t, fmt.Sprint("n", i), classes, &ran))
	}
	return snapshot
}

// TestRemovalMatchesEquivalentBatch runs many removals on one simulation, and compares each with a plan of the
// equivalent batch.
func TestRemovalMatchesEquivalentBatch(t *testing.T) {
	cat := planningtest.NewCatalogue()
	var moved, onto, fresh, left int
	rapid.Check(t, func(t *rapid.T) {
		snapshot := genCluster(t)
		stock := instancetypes.New(snapshot, cat)
		before, err := json.Marshal(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		simulation := solver.NewSimulation(snapshot, stock)
		for range rapid.IntRange(1, 4).Draw(t, "questions") {
			nodes := rapid.SliceOfNDistinct(rapid.IntRange(0, len(snapshot.Nodes)-1), 1, 3, rapid.ID).Draw(t, "nodes")
			batch := solver.Equivalent(snapshot, nodes...)
			got, want := simulation.SimulateRemoval(nodes...), withoutBound(solver.FirstEffort(batch, stock))
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("removal of %v:\n%s\nplan of the equivalent batch:\n%s", nodes, describeResult(got), describeResult(want))
			}
			if len(got.Unplaced) == 0 && !reflect.DeepEqual(got, withoutBound(solver.SolveWithTypes(batch, stock))) {
				t.Fatal("every pod is placed, but SolveWithTypes has another plan")
			}
			onto, fresh, left = onto+len(got.Nominations), fresh+len(got.Nodes), left+countUnplaced(got)
			for _, class := range batch.Pending {
				moved += len(class.Pods)
			}
		}
		if after, _ := json.Marshal(snapshot); string(after) != string(before) {
			t.Fatal("the snapshot was changed")
		}
	})
	t.Logf("%d pods moved, %d onto existing nodes, %d new nodes, %d unplaced", moved, onto, fresh, left)
	if onto == 0 || fresh == 0 || left == 0 {
		t.Error("the generated clusters cover too few cases")
	}
}

// withoutBound returns the result without its bound, as simulations return it.
func withoutBound(r planning.Result) planning.Result {
	r.BoundPerHour = 0
	return r
}

// TestRemovalWithOneNode simulates removals with at most one new node, and checks the results against
// Kubernetes' rules.
func TestRemovalWithOneNode(t *testing.T) {
	cat := planningtest.NewCatalogue()
	var one, less int
	check := func(t *rapid.T) {
		snapshot := genCluster(t)
		stock := instancetypes.New(snapshot, cat)
		simulation := solver.NewSimulation(snapshot, stock)
		for i := range snapshot.Nodes {
			got := simulation.SimulateRemovalWithOneNode(i)
			if len(got.Nodes) > 1 {
				t.Fatalf("removal of %d:\n%s", i, describeResult(got))
			}
			if err := planningtest.CheckResult(solver.Equivalent(snapshot, i), cat, got); err != nil {
				t.Fatalf("removal of %d:\n%s\n%v", i, describeResult(got), err)
			}
			if one += len(got.Nodes); len(got.Unplaced) == 0 && len(simulation.SimulateRemoval(i).Nodes) > 1 {
				less++
			}
		}
	}
	// About one run in a hundred generates no cluster for which the two differ.
	for i := 0; i < 5 && less == 0; i++ {
		rapid.Check(t, check)
	}
	t.Logf("%d new nodes, %d of them where a plan uses several", one, less)
	if one == 0 || less == 0 {
		t.Error("the generated clusters are too easy")
	}
}

func describeResult(r planning.Result) string {
	var out strings.Builder
	for _, n := range r.Nominations {
		fmt.Fprintf(&out, "  %s onto %s%s\n", n.Pod.UID, n.Claim, n.Node)
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		fmt.Fprintf(&out, "  new %s %v %d options %v: %v\n", n.NodePool, n.PricePerHour, len(n.Offerings), n.Requirements, n.Pods)
	}
	for _, u := range r.Unplaced {
		fmt.Fprintf(&out, "  left %d %s %+v\n", len(u.Pods), u.Pods[0].UID, u.Rejections)
	}
	fmt.Fprint(&out, "  ", r.PricePerHour, " ", r.BoundPerHour, " ", r.Partial)
	return out.String()
}
