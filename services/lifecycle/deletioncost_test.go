package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// inReplicaSet makes a pod one of a ReplicaSet.
func inReplicaSet(pod *corev1.Pod) {
	pod.UID = types.UID(pod.Name)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
}

// manageDeletionCosts restarts the service with PodDeletionCostManagement, and returns the results of
// its writes.
func (s *testCluster) manageDeletionCosts() *[]string {
	results := &[]string{}
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
		c.PodDeletionCosts = true
		c.Metrics = func(m metric.Metric, value float64, labels ...string) {
			switch m.Name {
			case metric.DeletionCostWrites.Name:
				for range int(value) {
					*results = append(*results, labels[0])
				}
			case metric.DeletionCostNodes.Name:
				*results = append(*results, fmt.Sprintf("%s has %g nodes", labels[0], value))
			}
		}
	})
	return results
}

// deletionCosts returns the annotations of the pods as "a=-1 b=".
func (s *testCluster) deletionCosts() string {
	s.t.Helper()
	pods, err := cluster.List[*corev1.Pod](s.t.Context(), s.Server, cluster.Pods)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, pod := range pods {
		out = append(out, pod.Name+"="+pod.Annotations[corev1.PodDeletionCost])
	}
	return strings.Join(out, " ")
}

func (s *testCluster) setDeletionCost(pod, cost string) {
	s.ChangeObject(cluster.Pods, cluster.Key{Namespace: "default", Name: pod}, func(o cluster.Object) {
		o.SetAnnotations(map[string]string{corev1.PodDeletionCost: cost})
	})
}

// The dearer node has the lower rank. Values of users are overwritten, and removed from nodes without a
// rank. Pods of other controllers are left alone.
func TestDeletionCosts(t *testing.T) {
	s := newInitializedCluster(t, 3)
	s.updatePool(func(np *karpenter.NodePool) { np.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0) })
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-1"}, func(o cluster.Object) {
		o.GetAnnotations()[planning.PriceAnnotation] = "9"
	})
	s.addPod("old-0", "a0", inReplicaSet)
	s.addPod("old-1", "b0", inReplicaSet)
	s.addPod("old-2", "c0", inReplicaSet)
	s.addPod("old-2", "c1")
	s.setDeletionCost("a0", "100")
	s.setDeletionCost("c0", "100")
	s.setDeletionCost("c1", "100")
	s.advance(2 * time.Minute)
	if got := s.deletionCosts(); got != "a0=100 b0= c0=100 c1=100" {
		t.Fatalf("without the feature gate the deletion costs are %s", got)
	}
	results := s.manageDeletionCosts()
	s.advance(2 * time.Second)
	if got := s.deletionCosts(); got != "a0=-1 b0=-2 c0= c1=100" {
		t.Fatalf("the deletion costs are %s", got)
	}
	if writes := countResults(results); writes["updated"] != 3 || len(writes) != 1 {
		t.Errorf("the results are %v", writes)
	}
	if !slices.Contains(*results, "default has 3 nodes") {
		t.Errorf("the gauge is %v", *results)
	}
	s.setDeletionCost("a0", "7")
	s.advance(10 * time.Second)
	if got := s.deletionCosts(); got != "a0=7 b0=-2 c0= c1=100" {
		t.Errorf("within a minute the deletion costs became %s", got)
	}
	s.advance(time.Minute)
	if got := s.deletionCosts(); got != "a0=-1 b0=-2 c0= c1=100" {
		t.Errorf("after a minute the deletion costs are %s", got)
	}
	*results = nil
	s.advance(3 * time.Minute)
	if writes := countResults(results); writes["updated"] != 0 {
		t.Errorf("without a change the results are %v", writes)
	}
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-1"}, ""); err != nil {
		t.Fatal(err)
	}
	s.ChangeObject(cluster.Pods, cluster.Key{Namespace: "default", Name: "b0"}, func(o cluster.Object) {
		o.SetAnnotations(map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"})
	})
	s.advance(time.Minute)
	if got := s.deletionCosts(); !strings.Contains(got, "b0=-2147483648") || !strings.Contains(got, "a0=-1") {
		t.Errorf("while a node is removed the deletion costs are %s", got)
	}
}

func countResults(results *[]string) map[string]int {
	out := map[string]int{}
	for _, result := range *results {
		if !strings.Contains(result, " ") {
			out[result]++
		}
	}
	return out
}

// Nodes are ranked by the prices of the latest catalogue, which NodeOverlays change. A node whose
// NodePool does not offer its instance type has no rank.
func TestDeletionCostPrices(t *testing.T) {
	batch := planningtest.NewBatch()
	batch.Snapshot.Settings.Gates.NodeOverlay = true
	s := newInitializedCluster(t, 4)
	configure := s.storeCatalogue(batch)
	s.updatePool(func(np *karpenter.NodePool) { np.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0) })
	for i, instanceType := range []string{"t4g.large", "t4g.medium", "x9.large", planningtest.NewCatalogue().Types[0].Name} {
		name := fmt.Sprint("old-", i)
		s.setClaim(name, func(c *karpenter.NodeClaim) {
			c.Labels[corev1.LabelInstanceTypeStable], c.Labels[corev1.LabelTopologyZone] = instanceType, planningtest.Region+"a"
			c.Labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeOnDemand
		})
		s.addPod(name, fmt.Sprint("p", i), inReplicaSet)
	}
	s.setDeletionCost("p2", "100")
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
		configure(c)
		c.PodDeletionCosts = true
	})
	s.advance(2 * time.Second)
	if got := s.deletionCosts(); got != "p0=-2 p1=-1 p2= p3=-3" {
		t.Errorf("the deletion costs are %s", got)
	}
	s.SeedObjects(&karpenter.NodeOverlay{
		ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", UID: "elsewhere"},
		Spec: karpenter.NodeOverlaySpec{
			Requirements: []karpenter.OverlayRequirement{
				{Key: corev1.LabelInstanceTypeStable, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4g.large"}},
				{Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpNotIn, Values: []string{planningtest.Region + "a"}},
			},
			Price: new("0.0001"),
		},
	})
	s.advance(2 * time.Minute)
	if got := s.deletionCosts(); got != "p0=-2 p1=-1 p2= p3=-3" {
		t.Errorf("with a NodeOverlay for other zones the deletion costs are %s", got)
	}
	s.SeedObjects(&karpenter.NodeOverlay{
		ObjectMeta: metav1.ObjectMeta{Name: "dear", UID: "dear"},
		Spec: karpenter.NodeOverlaySpec{
			Requirements: []karpenter.OverlayRequirement{{Key: corev1.LabelInstanceTypeStable, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4g.medium"}}},
			Price:        new("9"),
		},
	})
	s.advance(2 * time.Minute)
	if got := s.deletionCosts(); got != "p0=-1 p1=-3 p2= p3=-2" {
		t.Errorf("with the NodeOverlay the deletion costs are %s", got)
	}
}

// A write that loses a race is skipped, and the next ranking repeats it. A failed write is an error and
// repeated as well.
func TestDeletionCostWritesThatFail(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.updatePool(func(np *karpenter.NodePool) { np.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0) })
	s.addPod("old-0", "a0", inReplicaSet)
	s.advance(time.Second)
	results := s.manageDeletionCosts()
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbPatch, Kind: cluster.Pods, As: fault.Conflict, Times: 1})
	s.reconcile()
	if writes := countResults(results); writes["skipped_conflict"] != 1 || s.deletionCosts() != "a0=" {
		t.Fatalf("after a lost race the results are %v, and the deletion costs %s", writes, s.deletionCosts())
	}
	s.advance(time.Minute)
	if got := s.deletionCosts(); got != "a0=-1" {
		t.Fatalf("after a minute the deletion costs are %s", got)
	}
	s.setDeletionCost("a0", "3")
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbPatch, Kind: cluster.Pods, As: fault.Denied, Times: 1})
	failed := false
	for range 130 {
		s.now = s.now.Add(time.Second)
		s.cache.DeliverAll()
		failed = s.svc.Step(t.Context()) != nil || failed
	}
	if writes := countResults(results); !failed || writes["error"] != 1 || s.deletionCosts() != "a0=-1" {
		t.Errorf("after a denied write (reported: %t) the results are %v, and the deletion costs %s", failed, writes, s.deletionCosts())
	}
}

// One reconcile writes few pods, so that it does not delay others.
func TestDeletionCostsAreWrittenGradually(t *testing.T) {
	s := newInitializedCluster(t, 5)
	s.updatePool(func(np *karpenter.NodePool) { np.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0) })
	for i := range 100 {
		s.addPod(fmt.Sprintf("old-%d", i%5), fmt.Sprintf("p%02d", i), inReplicaSet)
	}
	s.advance(time.Second)
	results := s.manageDeletionCosts()
	for step, want := range []int{40, 80, 100} {
		s.reconcile()
		if got := countResults(results)["updated"]; got != want {
			t.Errorf("after reconcile %d there are %d writes, want %d", step+1, got, want)
		}
	}
}
