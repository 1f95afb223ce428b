package watcher_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// The documents of objects that are listed once have the same digests, and so the same bytes, as the
// documents that the watcher stores for the same cluster.
func TestCollectedDocumentsEqualStored(t *testing.T) {
	s := newHarness(t)
	s.constraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway}}
	s.restart("pod-1")
	s.SeedObjects(managedCluster(s.now)...)
	s.advance(3 * time.Second)
	message, batch := s.takeBatch()
	asked, err := event.DecodeBody[event.PodsUnschedulable](message)
	if err != nil {
		t.Fatal(err)
	}
	sent := s.disruption.drain()
	taken, err := event.DecodeBody[event.ClusterSnapshot](sent[len(sent)-1])
	if err != nil {
		t.Fatal(err)
	}
	if len(batch.Pending) != 1 || len(batch.Snapshot.Nodes) != 2 || len(batch.Snapshot.NodePools) != 1 {
		t.Fatalf("the batch lacks objects: %+v", batch)
	}

	observed := watcher.Observation{
		Feed: s.listOnce(), Cluster: event.Cluster{Name: "prod", UID: "uid"}, Catalogue: batch.Snapshot.Catalogue, DefaultConstraints: s.constraints,
		Outbox: batch.Outbox, Seq: batch.Seq, Now: batch.Snapshot.TakenAt,
	}
	got, _ := watcher.CollectDocuments(observed)
	if ref, _, err := blob.Encode(planning.BatchKind, got); err != nil || ref != asked.Batch {
		t.Errorf("the batch is %s, and the watcher stored %s (%v)", ref.Key(), asked.Batch.Key(), err)
	}
	observed.Feed, observed.Now = s.listOnce(), taken.Taken
	_, snapshot := watcher.CollectDocuments(observed)
	if ref, _, err := blob.Encode(planning.SnapshotKind, snapshot); err != nil || ref != taken.Snapshot {
		t.Errorf("the snapshot is %s, and the watcher stored %s (%v)", ref.Key(), taken.Snapshot.Key(), err)
	}
	if changed := s.cache.ListMutated(); len(changed) > 0 {
		t.Errorf("objects of the cache were changed: %v", changed)
	}
}

// listOnce lists the objects of the cluster into stores.
func (s *harness) listOnce() cluster.Stores {
	s.t.Helper()
	feed := cluster.NewStores(watcher.WatchedKinds(planning.Settings{}, true), watcher.Trims(false))
	for kind, store := range feed {
		objects, err := s.ClientFor("user").List(s.t.Context(), kind, "")
		if err != nil {
			s.t.Fatal(err)
		}
		store.Replace(objects)
	}
	if !feed.Synced() {
		s.t.Error("the stores are not synced")
	}
	return feed
}

// managedCluster is a managed node with a protected pod and a daemon, a claim without a node, a pending pod, and a pod
// that is not planned.
func managedCluster(now time.Time) []cluster.Object {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "eu-west-1a"}}}
	node.Spec.ProviderID = "aws:///eu-west-1a/i-1"
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	joined := claim("c", true)
	joined.Status.ProviderID = node.Spec.ProviderID
	joined.Status.Conditions = joined.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, now)
	web := unschedulable("default", "web")
	web.Labels, web.Spec.NodeName, web.Status = map[string]string{"app": "web"}, "n", corev1.PodStatus{Phase: corev1.PodRunning}
	log := unschedulable("default", "log")
	log.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", UID: "log", Controller: new(true)}}
	log.Spec.NodeName, log.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
	gated := unschedulable("default", "gated")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
	return []cluster.Object{
		node, joined, claim("d", true), web, log, gated, unschedulable("default", "pending"),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: web.Labels}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Selector: web.Labels}},
		&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
	}
}
