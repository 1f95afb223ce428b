package watcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const namespace = "kube-system"

// fakeQueue records the messages that it receives, or fails. It calls onSend first.
type fakeQueue struct {
	t      *testing.T
	sent   []event.Envelope
	err    error
	onSend func()
}

func (l *fakeQueue) Send(_ context.Context, messages ...queue.Outgoing) error {
	if l.onSend != nil {
		l.onSend()
	}
	if l.err != nil {
		return l.err
	}
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			l.t.Fatal(err)
		}
		l.sent = append(l.sent, e)
	}
	return nil
}

// drain empties the queue.
func (l *fakeQueue) drain() []event.Envelope {
	out := l.sent
	l.sent = nil
	return out
}

// harness is a watcher in a simulated cluster. Tests use its embedded server for their own calls.
type harness struct {
	*memcluster.Server
	t                            *testing.T
	svc                          *watcher.Service
	cache                        *memcluster.Cache
	blobs                        *memblob.Store
	planner, disruption, catalog fakeQueue
	now                          time.Time
	// constraints are the default constraints of the next restart.
	constraints []corev1.TopologySpreadConstraint
	// spans are the reported spans.
	spans []host.Span
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s := &harness{t: t, now: memcluster.Epoch}
	s.planner.t, s.disruption.t, s.catalog.t = t, t, t
	clock := func() time.Time { return s.now }
	s.Server = memcluster.New(memcluster.Options{Now: clock})
	s.blobs = memblob.New(memblob.Options{Now: clock})
	s.cache = s.NewCache(memcluster.CacheOptions{Trim: watcher.Trims(false), FindMutated: true})
	s.publishCatalogue(s.now)
	s.restart("pod-1")
	return s
}

// publishCatalogue publishes a catalogue as the latest.
func (s *harness) publishCatalogue(asOf time.Time) {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, catalog.Kind, catalog.Catalogue{Region: "eu-west-1", AsOf: asOf})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := blob.SetLatest(s.t.Context(), s.blobs, ref); err != nil {
		s.t.Fatal(err)
	}
}

// restart starts a new process without in-memory state.
func (s *harness) restart(holder string) {
	s.svc = watcher.New(watcher.Config{
		Client: s.ClientFor(holder), Cache: s.cache, Blobs: s.blobs, Planner: &s.planner, Disruption: &s.disruption, Catalog: &s.catalog,
		Cluster: event.Cluster{Name: "prod", UID: "uid"}, Namespace: namespace, KarpenterNamespace: namespace, Holder: holder,
		DefaultConstraints: s.constraints,
		Now:                func() time.Time { return s.now }, Span: func(told host.Span) { s.spans = append(s.spans, told) },
	})
}

// advance advances the clock in steps of the watcher's interval and runs each step.
func (s *harness) advance(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(watcher.StepInterval)
		s.cache.DeliverAll()
		if err := s.svc.Step(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// addPending adds an unschedulable pod.
func (s *harness) addPending(name string) {
	s.t.Helper()
	s.SeedObjects(unschedulable("default", name))
}

func unschedulable(namespace, name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}

// takeBatch returns the only message to the planner, and its batch.
func (s *harness) takeBatch() (event.Envelope, planning.Batch) {
	s.t.Helper()
	sent := s.planner.drain()
	if len(sent) != 1 {
		s.t.Fatalf("%d messages to the planner", len(sent))
	}
	body, err := event.DecodeBody[event.PodsUnschedulable](sent[0])
	if err != nil {
		s.t.Fatal(err)
	}
	batch, err := blob.Get[planning.Batch](s.t.Context(), s.blobs, body.Batch)
	if err != nil {
		s.t.Fatal(err)
	}
	if held := s.readOutbox(); body.Outbox != held.UID() || batch.Outbox != body.Outbox || batch.Seq != body.Seq {
		s.t.Fatalf("the message has %+v, the batch %s %d", body, batch.Outbox, batch.Seq)
	}
	return sent[0], batch
}

// Pods are collected into one batch, and the outbox is updated before the message is sent.
func TestFirstBatchIsSent(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(500 * time.Millisecond)
	s.addPending("b")
	s.advance(time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("a batch was sent before the window was over")
	}
	s.planner.onSend = func() {
		if held := s.readOutbox(); held.State != outbox.Sent || held.Seq != 1 {
			t.Errorf("the message was sent with outbox state %s and number %d", held.State, held.Seq)
		}
	}
	s.advance(500 * time.Millisecond)
	_, batch := s.takeBatch()
	if batch.Seq != 1 || len(batch.Pending) != 1 || len(batch.Pending[0].Pods) != 2 || batch.Snapshot.Catalogue.IsZero() || batch.Snapshot.UID != "uid" {
		t.Errorf("got batch %+v", batch)
	}
	if got := s.readOutbox(); got.Epoch != 1 {
		t.Errorf("got epoch %d", got.Epoch)
	}
}

// The batch in flight is sent again unchanged, by any leader, until it is answered.
func TestBatchIsSentAgain(t *testing.T) {
	s := newHarness(t)
	s.planner.err = fault.E("sending", fault.Unknown, nil)
	s.addPending("a")
	s.cache.DeliverAll()
	for range 4 {
		s.now = s.now.Add(watcher.StepInterval)
		_ = s.svc.Step(t.Context())
	}
	if held := s.readOutbox(); held.State != outbox.Sent {
		t.Fatalf("got outbox state %s", held.State)
	}
	s.planner.err = nil
	s.advance(watcher.StepInterval)
	first, _ := s.takeBatch()
	s.addPending("b")
	s.advance(14 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatalf("sent %d messages within 15 s, want none", len(got))
	}
	s.advance(2 * time.Second)
	again, _ := s.takeBatch()
	if again.ID != first.ID || string(again.Data) != string(first.Data) {
		t.Error("the batch was sent again as another message")
	}
	s.restart("pod-2")
	s.now = s.now.Add(lease.Duration)
	s.advance(lease.Duration + time.Second)
	if third, _ := s.takeBatch(); third.ID != first.ID {
		t.Error("another leader sent another batch")
	}
}

// A batch without a plan times out after 90 s. The next one contains every pod, and a late plan of
// the first is rejected.
func TestBatchTimesOut(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	s.addPending("b")
	s.advance(87 * time.Second)
	if seq := s.readOutbox().Seq; seq != 1 {
		t.Fatalf("after 89 s the outbox has number %d", seq)
	}
	s.planner.drain()
	s.advance(4 * time.Second)
	_, batch := s.takeBatch()
	if batch.Seq != 2 || len(batch.Pending[0].Pods) != 2 {
		t.Errorf("batch %d has the pods %+v", batch.Seq, batch.Pending)
	}
}

func TestBatchTimesOutWithoutPendingPods(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	if err := s.DeletePod(t.Context(), cluster.Key{Namespace: "default", Name: "a"}, "", 0); err != nil {
		t.Fatal(err)
	}
	s.advance(95 * time.Second)
	if held := s.readOutbox(); held.Seq != 2 || held.State != outbox.Done || len(held.Claims) != 0 {
		t.Errorf("got outbox %+v", held.Outbox)
	}
	s.planner.drain()
	s.advance(time.Minute)
	if got := s.planner.drain(); len(got) != 0 {
		t.Errorf("%d messages without a pending pod", len(got))
	}
}

func claim(name string, admitted bool) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	if admitted {
		c.Annotations["joist.sh/admitted"] = "2026-01-01T00:00:00Z"
	}
	return c
}

// While pods are pending, batches continue. They are sent at once when the supply changes.
func TestPendingPodsArePlannedAgain(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	s.takeBatch()
	s.applyPlan(outbox.Done)
	s.advance(27 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("the same pod was planned again too soon")
	}
	s.advance(5 * time.Second)
	s.takeBatch()
	s.applyPlan(outbox.Done)
	// A new catalogue starts a batch within seconds.
	s.publishCatalogue(s.now)
	s.advance(7 * time.Second)
	s.takeBatch()
}

func TestMissingCatalogueIsRetried(t *testing.T) {
	s := newHarness(t)
	for _, key := range s.blobs.ListKeys() {
		s.blobs.RemoveKey(key)
	}
	s.addPending("a")
	s.cache.DeliverAll()
	var err error
	for range 4 {
		s.now = s.now.Add(watcher.StepInterval)
		err = s.svc.Step(t.Context())
	}
	if !fault.Is(err, fault.Retry) || fault.FindHint(err) == "" || s.readOutbox().Seq != 0 {
		t.Errorf("got %v, outbox number %d", err, s.readOutbox().Seq)
	}
	s.publishCatalogue(s.now)
	s.advance(watcher.StepInterval)
	s.takeBatch()
}

// Another process updated the outbox: the watcher reads it again and sends nothing.
func TestOutboxConflictSendsNothing(t *testing.T) {
	s := newHarness(t)
	s.advance(watcher.StepInterval)
	s.InjectFaults(memcluster.Fault{Actor: "pod-1", Verb: memcluster.VerbUpdate, Kind: cluster.ConfigMaps, As: fault.Conflict, Times: 1})
	s.addPending("a")
	s.advance(2 * watcher.StepInterval)
	if got := s.planner.drain(); len(got) != 0 || s.readOutbox().State != outbox.Idle {
		t.Fatalf("sent %d messages after a lost swap, outbox state %s", len(got), s.readOutbox().State)
	}
	s.advance(watcher.StepInterval)
	s.takeBatch()
}

func TestRequestsToCatalog(t *testing.T) {
	s := newHarness(t)
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u", Generation: 3}}
	class.Spec.Role = "node"
	s.SeedObjects(class)
	types := func(d time.Duration) map[event.Type]int {
		t.Helper()
		s.catalog.drain()
		s.advance(d)
		out := map[event.Type]int{}
		for _, e := range s.catalog.drain() {
			out[e.Type]++
		}
		return out
	}
	if diff := cmp.Diff(map[event.Type]int{event.NodeClassChangedType: 4, event.InventoryWantedType: 2}, types(time.Minute)); diff != "" {
		t.Errorf("in the first minute, not ready:\n%s", diff)
	}
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
		c := o.(*karpenter.EC2NodeClass)
		for _, kind := range []string{karpenter.ConditionTypeReady, karpenter.ConditionTypeSubnetsReady} {
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 3}, s.now)
		}
	})
	s.advance(15 * time.Second)
	if diff := cmp.Diff(map[event.Type]int{event.NodeClassChangedType: 2, event.InventoryWantedType: 4}, types(2*time.Minute)); diff != "" {
		t.Errorf("in two minutes, ready:\n%s", diff)
	}
	s.catalog.drain()
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) { o.(*karpenter.EC2NodeClass).Spec.Role = "other" })
	s.advance(watcher.StepInterval)
	if got := s.catalog.drain(); len(got) != 1 || got[0].Type != event.NodeClassChangedType {
		t.Errorf("%d requests after a change", len(got))
	}
}

// A request that could not be sent is retried at the next step, and a class that cannot be encoded
// does not delay others.
func TestFailedRequestsAreRetried(t *testing.T) {
	s := newHarness(t)
	huge := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "a-huge-one"}}
	data := string(make([]byte, 64<<10)) // six bytes each in JSON
	huge.Spec.UserData = &data
	s.SeedObjects(huge, &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	s.cache.DeliverAll()
	s.catalog.err = fault.E("sending", fault.Retry, nil)
	if err := s.svc.Step(t.Context()); err == nil {
		t.Fatal("Step returned no error")
	}
	s.catalog.err = nil
	s.now = s.now.Add(watcher.StepInterval)
	_ = s.svc.Step(t.Context())
	var subjects []string
	for _, e := range s.catalog.drain() {
		subjects = append(subjects, e.Subject)
	}
	if diff := cmp.Diff([]string{"ec2nodeclass/default", "inventory"}, subjects); diff != "" {
		t.Error(diff)
	}
}

// A replica that stops releases its Lease, so that another can lead at once.
func TestReleaseLease(t *testing.T) {
	s := newHarness(t)
	s.advance(time.Minute)
	if err := s.svc.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.catalog.drain()
	s.restart("pod-2")
	s.advance(watcher.StepInterval)
	if got := s.catalog.drain(); len(got) == 0 {
		t.Error("the next replica does not lead at once")
	}
}

// While Karpenter or another replica leads, the watcher sends nothing.
func TestOnlyTheLeaderActs(t *testing.T) {
	s := newHarness(t)
	karpenters := lease.Lease{Key: cluster.Key{Namespace: namespace, Name: lease.KarpenterName}, Holder: "karpenter-1"}
	s.addPending("a")
	for range 20 {
		if held, err := karpenters.AcquireOrRenew(t.Context(), s.Server, s.now); !held || err != nil {
			t.Fatalf("Karpenter did not keep its Lease: %v", err)
		}
		s.advance(2 * time.Second)
	}
	if len(s.planner.drain())+len(s.catalog.drain())+len(s.disruption.drain()) != 0 {
		t.Fatal("the watcher acted while Karpenter led")
	}
	if s.svc.Reconciled() {
		t.Error("a standby replica reports a reconcile")
	}
	s.advance(lease.Duration + 5*time.Second)
	s.takeBatch()
	if !s.svc.Reconciled() {
		t.Error("the leader does not report a reconcile")
	}
}
