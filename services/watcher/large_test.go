package watcher_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/blobtest"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// avoidHosts makes a pod avoid this many hosts.
func avoidHosts(p *corev1.Pod, hosts int) *corev1.Pod {
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("%s-%s-%06d", p.Namespace, strings.Repeat("x", 40), i))
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight:     1,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: names}}},
	}}}}
	return p
}

// Pods whose specs are too large are left out of batches. An Event on each names the limit and how
// to correct the pod; other pods are planned.
func TestLargePodsAreLeftOut(t *testing.T) {
	s := newHarness(t)
	for i := range 90 {
		s.SeedObjects(avoidHosts(unschedulable("tenant", fmt.Sprint("p", i)), 1000+i))
	}
	s.addPodIn("other")
	planned := map[string]int{}
	s.runPlanner(20*time.Second, "", planned)
	if planned["other"] == 0 || planned["tenant"] != 0 {
		t.Errorf("planned %v", planned)
	}
	recorded := 0
	for _, e := range s.Events() {
		if e.About.GetNamespace() != "tenant" {
			t.Errorf("the Event %q is on %s", e.Message, e.About.GetNamespace())
		}
		if e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "more than 32 KiB") && strings.Contains(e.Message, "fewer values") {
			recorded++
		}
	}
	if recorded == 0 {
		t.Error("no Event names the limit and the correction")
	}
}

func (s *harness) limitBatchSize(most int) {
	s.svc = watcher.New(watcher.Config{
		Client: s.ClientFor("pod-1"), Cache: s.cache, Blobs: blobtest.SizeLimited{Store: s.blobs, Prefix: "batches/", MaxSize: most}, Planner: &s.planner, Disruption: &s.disruption, Catalog: &s.catalog,
		Cluster: event.Cluster{Name: "prod", UID: "uid"}, Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1",
		Now: func() time.Time { return s.now }, Span: func(host.Span) {},
	})
}

// A batch that is too large to store is sent in parts: every pod is planned, and no pod is left
// out.
func TestTooLargeBatchesAreSplit(t *testing.T) {
	s := newHarness(t)
	const teams = 8
	for i := range teams {
		s.SeedObjects(avoidHosts(unschedulable(fmt.Sprint("team-", i), "p"), 200))
	}
	ref, _, err := blob.Encode(planning.BatchKind, avoidHosts(unschedulable("team-0", "p"), 200))
	if err != nil {
		t.Fatal(err)
	}
	s.limitBatchSize(3 * ref.Size)
	planned := map[string]int{}
	s.runPlanner(30*time.Second, "", planned)
	if len(planned) != teams {
		t.Errorf("planned %v", planned)
	}
	if held := s.readOutbox(); held.Bisection != nil && len(held.Bisection.Parked) > 0 || len(s.Events()) > 0 {
		t.Errorf("got bisection %+v and Events %v", held.Bisection, s.Events())
	}
}

// TestLargeNodesAreStoredInParts plans a pod although the nodes alone are too large for a batch, because their pods have large
// affinities.
func TestLargeNodesAreStoredInParts(t *testing.T) {
	s := newHarness(t)
	for i := range 6 {
		name := fmt.Sprint("node-", i)
		s.SeedObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		for j := range 5 {
			running := avoidHosts(unschedulable("tenant", fmt.Sprint(name, "-", j)), 200+i)
			running.Spec.NodeName, running.Status = name, corev1.PodStatus{Phase: corev1.PodRunning}
			s.SeedObjects(running)
		}
	}
	s.addPodIn("other")
	s.limitBatchSize(1000)
	planned := map[string]int{}
	s.runPlanner(20*time.Second, "", planned)
	if planned["other"] == 0 || len(s.Events()) > 0 {
		t.Errorf("planned %v, Events %v", planned, s.Events())
	}
}

// TestMissingPartIsStoredAgain removes a part from the bucket. The planner cannot read the next batch; the batch after it must be
// complete, and no pod is left out.
func TestMissingPartIsStoredAgain(t *testing.T) {
	s := newHarness(t)
	for i := range 3 {
		s.SeedObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}})
	}
	s.svc = watcher.New(watcher.Config{
		Client: s.ClientFor("pod-1"), Cache: s.cache, Blobs: s.blobs, Planner: &s.planner, Disruption: &s.disruption, Catalog: &s.catalog,
		Cluster: event.Cluster{Name: "prod", UID: "uid"}, Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1",
		Now: func() time.Time { return s.now }, Span: func(host.Span) {}, NodeParts: watcher.NodePartSizes{Inline: 1, Part: 2},
	})
	s.addPodIn("first")
	planned := map[string]int{}
	s.runPlanner(20*time.Second, "", planned)
	for _, key := range s.blobs.ListKeys() {
		if strings.HasPrefix(key, "nodes/") {
			s.blobs.RemoveKey(key)
		}
	}
	s.addPodIn("second")
	s.runPlanner(4*time.Minute, "", planned)
	if planned["first"] == 0 || planned["second"] == 0 || len(s.Events()) > 0 {
		t.Errorf("planned %v, Events %v", planned, s.Events())
	}
}

// If the snapshot alone is too large, no pod is parked, and the error names the cause.
func TestSnapshotTooLargeBlamesNoPod(t *testing.T) {
	s := newHarness(t)
	s.addPodIn("a")
	s.addPodIn("b")
	s.limitBatchSize(10)
	var last error
	for range 100 {
		s.now = s.now.Add(watcher.StepInterval)
		s.cache.DeliverAll()
		if err := s.svc.Step(t.Context()); err != nil {
			last = err
		}
	}
	if last == nil || !strings.Contains(last.Error(), "the snapshot of the cluster alone is too large") {
		t.Errorf("got error %v", last)
	}
	if held := s.readOutbox(); held.State != outbox.Idle || held.Bisection != nil {
		t.Errorf("got outbox %+v", held.Outbox)
	}
}
