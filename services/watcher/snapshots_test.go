package watcher_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestSnapshotsAreSent(t *testing.T) {
	s := newHarness(t)
	s.advance(time.Minute)
	if got := s.disruption.drain(); len(got) != 0 {
		t.Fatalf("%d snapshots of a cluster without managed nodes", len(got))
	}
	c := claim("c", true)
	c.Status.ProviderID = "aws:///eu-west-1a/i-1"
	c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, s.now)
	s.SeedObjects(c)
	s.advance(30 * time.Second)
	sent := s.disruption.drain()
	if len(sent) != 3 {
		t.Fatalf("%d snapshots in 30 s", len(sent))
	}
	body, err := event.DecodeBody[event.ClusterSnapshot](sent[0])
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := blob.Get[planning.Snapshot](t.Context(), s.blobs, body.Snapshot)
	if err != nil || len(snapshot.Nodes) != 1 || !snapshot.TakenAt.Equal(body.Taken) || body.Again {
		t.Errorf("%+v, %v", snapshot, err)
	}
	// While nothing changes, the message refers to the same document.
	again, err := event.DecodeBody[event.ClusterSnapshot](sent[2])
	if err != nil || again.Snapshot != body.Snapshot || !again.Again || again.Taken.Sub(body.Taken) < 20*time.Second || sent[1].ID == sent[2].ID {
		t.Errorf("the third message is %+v after %+v, %v", again, body, err)
	}
	for name, change := range map[string]func(){
		"a new pod": func() {
			pod := unschedulable("default", "late")
			pod.Spec.NodeName, pod.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
			s.SeedObjects(pod)
		},
		"a budget allows no evictions": func() {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}}
			budget.Status.DisruptionsAllowed = 0
			s.SeedObjects(budget)
		},
		"a new catalogue": func() { s.publishCatalogue(s.now) },
		"an hour later":   func() { s.advance(time.Hour - 20*time.Second) },
		"an offering is unavailable": func() {
			list, err := json.Marshal([]planning.Unavailable{{Subnet: "subnet-1", Until: s.now.Add(24 * time.Hour)}})
			if err != nil {
				t.Fatal(err)
			}
			s.SeedObjects(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: planning.UnavailableConfigMapName},
				Data:       map[string]string{planning.UnavailableKey: string(list)},
			})
		},
	} {
		s.advance(40 * time.Second)
		s.disruption.drain()
		change()
		s.advance(30 * time.Second)
		var last event.ClusterSnapshot
		if !slices.ContainsFunc(s.disruption.drain(), func(e event.Envelope) bool {
			last, err = event.DecodeBody[event.ClusterSnapshot](e)
			return err == nil && !last.Again
		}) {
			t.Errorf("%s: the old snapshot was sent again", name)
		}
		if latest, err := blob.GetLatest(t.Context(), s.blobs, planning.SnapshotKind); err != nil || latest != last.Snapshot {
			t.Errorf("%s: the latest snapshot is %v, %v", name, latest, err)
		}
	}
}

// A snapshot for disruption contains the pending pods, because they need free capacity; a batch
// contains them once.
func TestSnapshotsHavePendingPods(t *testing.T) {
	s := newHarness(t)
	c := claim("c", true)
	c.Status.ProviderID = "aws:///eu-west-1a/i-1"
	c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, s.now)
	s.SeedObjects(c)
	s.addPending("a")
	s.advance(5 * time.Second)
	if _, batch := s.takeBatch(); len(batch.Pending) != 1 || len(batch.Snapshot.PendingPods) != 0 {
		t.Errorf("a batch has %d pending classes, and %d in its snapshot", len(batch.Pending), len(batch.Snapshot.PendingPods))
	}
	sent := s.disruption.drain()
	body, err := event.DecodeBody[event.ClusterSnapshot](sent[len(sent)-1])
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := blob.Get[planning.Snapshot](t.Context(), s.blobs, body.Snapshot)
	if err != nil || len(snapshot.PendingPods) != 1 || snapshot.PendingPods[0].Pods[0].Name != "a" {
		t.Errorf("got pending pods %+v, %v", snapshot.PendingPods, err)
	}
}

// A batch has the default topology spread constraints of pods without their own, and the pods in the cluster stay as
// they are.
func TestBatchesHaveDefaultSpread(t *testing.T) {
	s := newHarness(t)
	s.constraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway}}
	s.restart("pod-1")
	web := map[string]string{"app": "web"}
	pod := unschedulable("default", "a")
	pod.Labels = web
	s.SeedObjects(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Selector: web}}, pod)
	s.advance(5 * time.Second)
	_, batch := s.takeBatch()
	if len(batch.Pending) != 1 || len(batch.Pending[0].Spec.Spread) != 1 || batch.Pending[0].Spec.Spread[0].LabelSelector.MatchLabels["app"] != "web" ||
		!batch.Pending[0].Spec.DefaultSpread || batch.Pending[0].Spec.Labels["app"] != "web" {
		t.Errorf("%+v", batch.Pending)
	}
	if changed := s.cache.ListMutated(); len(changed) > 0 {
		t.Errorf("objects of the cache were changed: %v", changed)
	}
}
