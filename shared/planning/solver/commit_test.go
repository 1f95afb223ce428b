package solver_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// withGone adds the removed nodes as nodes that are being deleted and have no pods.
func withGone(joined, was planning.Snapshot, gone []int) planning.Snapshot {
	joined.Nodes = slices.Clone(joined.Nodes)
	for _, i := range gone {
		node := was.Nodes[i]
		node.MarkedForDeletion, node.Pods = true, nil
		joined.Nodes = append(joined.Nodes, node)
	}
	return joined
}

// TestCommitMatchesNewSimulation compares a simulation after commits with a new simulation of the
// resulting cluster.
func TestCommitMatchesNewSimulation(t *testing.T) {
	cat := planningtest.NewCatalogue()
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		snapshot := genCluster(t)
		stock := instancetypes.New(snapshot, cat)
		simulation := solver.NewSimulation(snapshot, stock)
		var gone []int
		for i := range snapshot.Nodes {
			if rapid.Bool().Draw(t, "stays") || slices.Contains(gone, i) {
				continue
			}
			if result := simulation.SimulateRemoval(i); len(result.Unplaced)+len(result.Nodes) == 0 {
				simulation.Commit(result, i)
				gone = append(gone, i)
			}
		}
		after := withGone(simulation.ProjectSnapshot(), snapshot, gone)
		again := solver.NewSimulation(after, stock)
		for i := range snapshot.Nodes {
			at := slices.IndexFunc(after.Nodes, func(n planning.Node) bool { return n.Name == snapshot.Nodes[i].Name })
			got, want := simulation.SimulateRemoval(i), again.SimulateRemoval(at)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after the commit of %v, removal of %d:\n%s\nin a new simulation:\n%s", gone, i, describeResult(got), describeResult(want))
			}
			if len(got.Nominations) > 0 && len(gone) > 0 {
				compared++
			}
		}
	})
	if compared == 0 {
		t.Error("no commit changed a later result, so the test cannot fail")
	}
}

// TestProjectSnapshotKeepsPods commits the removal of node after node, and checks that no pod is lost.
func TestProjectSnapshotKeepsPods(t *testing.T) {
	cat := planningtest.NewCatalogue()
	fresh, waiting := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		snapshot := genCluster(t)
		snapshot.PendingPods = []planning.PodClass{genClass(t, "waiting")}
		stock := instancetypes.New(snapshot, cat)
		for range 3 {
			simulation := solver.NewSimulation(snapshot, stock)
			for i := range snapshot.Nodes {
				result := simulation.SimulateRemoval(i)
				for _, n := range result.Nominations {
					to := slices.IndexFunc(snapshot.Nodes, func(node planning.Node) bool { return node.Name == n.Node })
					if to < 0 || !snapshot.Nodes[to].Ready || !snapshot.Nodes[to].Initialized {
						t.Fatalf("pod %s is nominated for node %q, which is not ready", n.Pod.UID, n.Node)
					}
				}
				if len(result.Unplaced) == 0 && rapid.Bool().Draw(t, "taken") {
					simulation.Commit(result, i)
				}
			}
			joined := simulation.ProjectSnapshot()
			if got, want := living(joined), living(snapshot); !slices.Equal(got, want) {
				t.Fatalf("pods after the removals:\n%v\nbefore:\n%v", got, want)
			}
			checkJoined(t, snapshot, joined)
			fresh, waiting = fresh+len(joined.Nodes), waiting+len(joined.PendingPods)
			snapshot = joined
		}
	})
	if fresh == 0 || waiting == 0 {
		t.Error("the generated clusters cover too few cases")
	}
}

// living returns the UIDs of all reschedulable pods, running or pending.
func living(s planning.Snapshot) (out []string) {
	add := func(classes []planning.PodClass) {
		for _, class := range classes {
			for _, pod := range class.ReschedulablePods() {
				out = append(out, pod.UID)
			}
		}
	}
	add(s.PendingPods)
	for i := range s.Nodes {
		add(s.Nodes[i].Pods)
	}
	slices.Sort(out)
	return out
}

// checkJoined checks the new nodes of a snapshot.
func checkJoined(t *rapid.T, was, is planning.Snapshot) {
	names := map[string]bool{}
	for i := range is.Nodes {
		n := &is.Nodes[i]
		if names[n.Name] {
			t.Fatalf("two nodes have the name %s", n.Name)
		}
		names[n.Name] = true
		if slices.ContainsFunc(was.Nodes, func(old planning.Node) bool { return old.Name == n.Name }) {
			continue
		}
		if !n.Initialized || !n.Ready || n.Labels[corev1.LabelInstanceTypeStable] == "" || n.Labels[corev1.LabelTopologyZone] == "" || n.Capacity == nil {
			t.Fatalf("the new node has missing fields: %+v", n)
		}
		for name, quantity := range n.Used {
			if all := n.Allocatable[name]; quantity.Cmp(all) > 0 {
				t.Fatalf("node %s: used %s of %s, allocatable %s", n.Name, quantity.String(), name, all.String())
			}
		}
	}
}

// TestCommitIgnoresUnknownPods commits a result that also has pods that are not part of the removal.
func TestCommitIgnoresUnknownPods(t *testing.T) {
	snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
	snapshot.Nodes = []planning.Node{
		node("old", running(planningtest.NewPods("small", 1, "1500m", "1Gi"), planningtest.NewPods("new", 1, "1900m", "1Gi"), planningtest.NewPods("huge", 1, "5000", "1Gi"))), node("other"),
	}
	stock := instancetypes.New(snapshot, planningtest.NewCatalogue())
	project := func(edit func(*planning.Result)) planning.Snapshot {
		simulation := solver.NewSimulation(snapshot, stock)
		result := simulation.SimulateRemoval(0)
		if len(result.Nominations) != 1 || len(result.Nodes) != 1 || len(result.Unplaced) != 1 {
			t.Fatalf("got %s, want one pod on the node, one on a new node, and one unplaced", describeResult(result))
		}
		edit(&result)
		simulation.Commit(result, 0)
		out := simulation.ProjectSnapshot()
		for i := range out.Nodes {
			if n := &out.Nodes[i]; n.Name != "other" { // A hash of the pods.
				n.Name, n.Claim, n.ClaimUID = "", "", ""
				delete(n.Labels, corev1.LabelHostname)
			}
		}
		return out
	}
	unknown := planning.PodRef{Name: "unknown", UID: "unknown"}
	want, got := project(func(*planning.Result) {}), project(func(r *planning.Result) {
		r.Nominations = append([]planning.Nomination{{Namespace: "default", Pod: unknown, Node: "other"}, {Namespace: "default", Pod: r.Nominations[0].Pod, Node: "missing"}}, r.Nominations...)
		r.Nodes[0].Pods = append([]planning.PlacedPod{{Namespace: "default", Pod: unknown}}, r.Nodes[0].Pods...)
		r.Nodes[0].Offerings = append(r.Nodes[0].Offerings, planning.PricedOffering{Offering: event.Offering{InstanceType: "t4g.medium", Zone: "ap-northeast-2x", CapacityType: "on-demand"}})
		r.Unplaced[0].Pods = append([]planning.PodRef{unknown}, r.Unplaced[0].Pods...)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(got.PendingPods) != 1 || got.PendingPods[0].Pods[0].Node != "" {
		t.Errorf("the pending pods are %+v, want the unplaced pod without a node", got.PendingPods)
	}
}

func TestOnlyReadyNodesTakePods(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  func(*planning.Node)
		takes bool
	}{
		{"initialized and ready", func(*planning.Node) {}, true},
		{"not initialized", func(n *planning.Node) { n.Initialized = false }, false},
		{"not ready", func(n *planning.Node) { n.Ready = false }, false},
		{"going", func(n *planning.Node) { n.MarkedForDeletion = true }, false},
		{"not managed by Joist", func(n *planning.Node) { n.Claim, n.NodePool = "", "" }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
			snapshot.Nodes = []planning.Node{node("old", running(planningtest.NewPods("web", 1, "500m", "1Gi"))), node("other", tt.edit)}
			result := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemoval(0)
			if onto, fresh := placed(result); (onto["otherother"]+onto["other"] == 1) != tt.takes || (fresh == 0) != tt.takes {
				t.Errorf("nominations %v and %d new nodes", onto, fresh)
			}
		})
	}
}

// running puts pods on a node.
func running(classes ...planning.PodClass) func(*planning.Node) {
	return func(n *planning.Node) {
		n.Used = corev1.ResourceList{}
		for _, class := range classes {
			n.Pods = append(n.Pods, class)
			for range class.Pods {
				for name, quantity := range class.Spec.Requests {
					sum := n.Used[name]
					sum.Add(quantity)
					n.Used[name] = sum
				}
			}
		}
	}
}

// TestPendingPodsPrecedeMovedPods has free capacity for one of two pods.
func TestPendingPodsPrecedeMovedPods(t *testing.T) {
	big := func(name string) planning.PodClass { return planningtest.NewPods(name, 1, "1500m", "1Gi") }
	for _, tt := range []struct {
		name string
		edit func(*planning.Snapshot)
		free bool
	}{
		{"no pending pod", func(*planning.Snapshot) {}, true},
		{"a pending pod", func(s *planning.Snapshot) { s.PendingPods = []planning.PodClass{big("waits")} }, false},
		{"a node is being removed", func(s *planning.Snapshot) {
			s.Nodes = append(s.Nodes, node("going", running(big("goes")), func(n *planning.Node) { n.MarkedForDeletion = true }))
		}, false},
		{"a node is being removed, and its pod is pending", func(s *planning.Snapshot) {
			s.Nodes = append(s.Nodes, node("going", running(big("goes")), func(n *planning.Node) { n.MarkedForDeletion = true }))
			s.Nodes = append(s.Nodes, node("third"))
			s.PendingPods = []planning.PodClass{big("goes")}
		}, true},
		{"free capacity for a buffer", func(s *planning.Snapshot) {
			s.Settings.Gates.CapacityBuffer = true
			s.Buffers = []planning.Buffer{{Name: "spare", Spec: big("x").Spec, Replicas: new(int32(1))}}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
			snapshot.Nodes = []planning.Node{node("old", running(big("moves"))), node("other")}
			tt.edit(&snapshot)
			simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
			if _, fresh := placed(simulation.SimulateRemoval(0)); (fresh == 0) != tt.free {
				t.Errorf("%d new nodes", fresh)
			}
			for _, n := range simulation.ProjectSnapshot().Nodes {
				for _, class := range n.Pods {
					for _, pod := range class.Pods {
						if pod.Buffer != "" {
							t.Errorf("%s is not a pod of the test", pod.Name)
						}
					}
				}
			}
		})
	}
}

// TestPendingPodsMoveWithTheirRequests removes the node that a pending pod will get. Only this pod requests its resource,
// and no other node has that.
func TestPendingPodsMoveWithTheirRequests(t *testing.T) {
	const fpga = "example.com/fpga"
	snapshot := planningtest.NewBatch().Snapshot
	closed(&snapshot)
	snapshot.Nodes = []planning.Node{node("with", func(n *planning.Node) { n.Allocatable[fpga] = resource.MustParse("1") }), node("without")}
	snapshot.PendingPods = []planning.PodClass{planningtest.NewPods("web", 1, "100m", "64Mi", func(s *planning.PodSpec) { s.Requests[fpga] = resource.MustParse("1") })}
	result := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemoval(0)
	if len(result.Nominations) != 0 || count(result.Unplaced) != 1 {
		t.Errorf("%d pods on the other node and %d unplaced, want the pod unplaced", len(result.Nominations), count(result.Unplaced))
	}
}

// TestCommittedNodesCountInLimits commits a result that uses up the limits of a pool which counts nodes
// until they are gone.
func TestCommittedNodesCountInLimits(t *testing.T) {
	snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
	full := running(planningtest.NewPods("web", 1, "1500m", "1Gi"))
	snapshot.Nodes = []planning.Node{node("a", full), node("b", running(planningtest.NewPods("db", 1, "1500m", "1Gi")))}
	snapshot.NodePools[0].Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: resource.MustParse("3")}
	snapshot.NodePools[0].Annotations = map[string]string{policy.Limits: "strict"}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	if result := simulation.SimulateRemoval(1); len(result.Nodes) != 1 {
		t.Fatalf("%+v, want one new node", result)
	}
	result := simulation.SimulateRemoval(0)
	if len(result.Nodes) != 1 || result.Nodes[0].Pods[0].Pod.Node != "a" {
		t.Fatalf("%+v, want one new node for the pod of node a", result)
	}
	simulation.Commit(result, 0)
	if result := simulation.SimulateRemoval(1); len(result.Unplaced) != 1 || result.Unplaced[0].Rejections[0].Rule != planning.RuleLimits {
		t.Errorf("%+v, want no new node because of the limit", result)
	}
	joined := simulation.ProjectSnapshot()
	again := solver.NewSimulation(joined, instancetypes.New(joined, planningtest.NewCatalogue()))
	if result := again.SimulateRemoval(0); len(result.Nodes) != 1 {
		t.Errorf("%+v, want one new node within the limit", result)
	}
}

// TestCommittedRemovalsFreeLimits commits a result whose new node may have four of six cores: the removed
// node no longer counts, and the new one does.
func TestCommittedRemovalsFreeLimits(t *testing.T) {
	snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
	full := func(name string) planning.PodClass { return planningtest.NewPods(name, 1, "1500m", "1Gi") }
	snapshot.Nodes = []planning.Node{node("a", running(full("web"))), node("b", running(full("db")))}
	snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("6")}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	for i, want := range []string{"t4g.xlarge", "t4g.large"} {
		result := simulation.SimulateRemoval(i)
		if len(result.Nodes) != 1 {
			t.Fatalf("%+v, want one new node", result)
		}
		if options := result.Nodes[0].Offerings; options[len(options)-1].InstanceType != want {
			t.Errorf("removal of %d: %+v, want %s as the largest type", i, options, want)
		}
		simulation.Commit(result, i)
	}
}

// TestMissingStaticNodesAreExpected reads a cluster in which a static pool lacks one node, and no pod is pending.
func TestMissingStaticNodesAreExpected(t *testing.T) {
	snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
	snapshot.Settings.Gates.StaticCapacity = true
	snapshot.NodePools[0].Spec.Replicas = new(int64(2))
	snapshot.Nodes = []planning.Node{node("a")}
	if nodes := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).ProjectSnapshot().Nodes; len(nodes) != 2 {
		t.Errorf("%d nodes, want a and the missing one", len(nodes))
	}
}

// TestStaticNodesAreReplaced removes a node of a static pool.
func TestStaticNodesAreReplaced(t *testing.T) {
	snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
	snapshot.Settings.Gates.StaticCapacity = true
	snapshot.NodePools[0].Spec.Replicas = new(int64(2))
	snapshot.Nodes = []planning.Node{node("a"), node("b")}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	result := simulation.SimulateRemoval(0)
	if len(result.Nodes) != 1 {
		t.Fatalf("%d new nodes, want one for the removed node", len(result.Nodes))
	}
	simulation.Commit(result, 0)
	if result := simulation.SimulateRemoval(1); len(result.Nodes) != 1 {
		t.Errorf("%d new nodes, want one for the second removed node", len(result.Nodes))
	}
	if nodes := simulation.ProjectSnapshot().Nodes; len(nodes) != 2 || nodes[0].Name != "b" {
		t.Errorf("%d nodes, want b and one new node", len(nodes))
	}
}

func TestCommitsUpdateFeasibleSets(t *testing.T) {
	snapshot := planningtest.GenerateCluster(rand.New(rand.NewPCG(3, 0)), 100, 4000)
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	planned := 0
	for i := range snapshot.Nodes {
		result := simulation.SimulateRemoval(i)
		simulation.Commit(result, i)
		stale, cached := simulation.StaleSets()
		if planned += len(result.Nodes); len(stale) > 0 || cached < 2 {
			t.Fatalf("after %d planned nodes %d of %d feasible sets are stale: %q", planned, len(stale), cached, stale)
		}
	}
	if planned < 10 {
		t.Errorf("%d nodes were planned, want at least 10", planned)
	}
}
