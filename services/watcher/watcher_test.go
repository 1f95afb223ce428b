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

// line is a queue that remembers what it took, or fails; seen is told before.
type line struct {
	t     *testing.T
	taken []event.Envelope
	err   error
	seen  func()
}

func (l *line) Send(_ context.Context, messages ...queue.Outgoing) error {
	if l.seen != nil {
		l.seen()
	}
	if l.err != nil {
		return l.err
	}
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			l.t.Fatal(err)
		}
		l.taken = append(l.taken, e)
	}
	return nil
}

// take empties the queue.
func (l *line) take() []event.Envelope {
	out := l.taken
	l.taken = nil
	return out
}

// site is a watcher in a modelled cluster. Its own calls are the test's hand.
type site struct {
	*memcluster.Server
	t                            *testing.T
	svc                          *watcher.Service
	cache                        *memcluster.Cache
	blobs                        *memblob.Store
	planner, disruption, catalog line
	now                          time.Time
	// spans are those that were told.
	spans []host.Span
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, now: memcluster.Epoch}
	s.planner.t, s.disruption.t, s.catalog.t = t, t, t
	clock := func() time.Time { return s.now }
	s.Server = memcluster.New(memcluster.Options{Now: clock})
	s.blobs = memblob.New(memblob.Options{Now: clock})
	s.cache = s.NewCache(memcluster.CacheOptions{Trim: watcher.Trims()})
	s.publish(s.now)
	s.restart("pod-1")
	return s
}

// publish makes a catalogue the latest.
func (s *site) publish(asOf time.Time) {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, catalog.Kind, catalog.Catalogue{Region: "eu-west-1", AsOf: asOf})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := blob.Point(s.t.Context(), s.blobs, ref); err != nil {
		s.t.Fatal(err)
	}
}

// restart is a new process: it remembers nothing.
func (s *site) restart(holder string) {
	s.svc = watcher.New(watcher.Config{
		Client: s.As(holder), Cache: s.cache, Blobs: s.blobs, Planner: &s.planner, Disruption: &s.disruption, Catalog: &s.catalog,
		Cluster: event.Cluster{Name: "prod", UID: "uid"}, Namespace: namespace, KarpenterNamespace: namespace, Holder: holder,
		Now: func() time.Time { return s.now }, Span: func(told host.Span) { s.spans = append(s.spans, told) },
	})
}

// pass lets that much time pass in steps of the watcher's pace.
func (s *site) pass(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(watcher.StepInterval)
		s.cache.Flush()
		if err := s.svc.Step(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// pending adds a pod that the scheduler found no place for.
func (s *site) pending(name string) {
	s.t.Helper()
	s.Seed(unschedulable("default", name))
}

func unschedulable(namespace, name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}

// batch takes the one message to the planner and reads its batch.
func (s *site) batch() (event.Envelope, planning.Batch) {
	s.t.Helper()
	sent := s.planner.take()
	if len(sent) != 1 {
		s.t.Fatalf("%d messages to the planner", len(sent))
	}
	body, err := event.As[event.PodsUnschedulable](sent[0])
	if err != nil {
		s.t.Fatal(err)
	}
	batch, err := blob.Get[planning.Batch](s.t.Context(), s.blobs, body.Batch)
	if err != nil {
		s.t.Fatal(err)
	}
	if held := s.outbox(); body.Outbox != held.UID() || batch.Outbox != body.Outbox || batch.Seq != body.Seq {
		s.t.Fatalf("the message says %+v, the batch %s %d", body, batch.Outbox, batch.Seq)
	}
	return sent[0], batch
}

// Pods are gathered, and the outbox says so before anybody is told.
func TestFirstBatch(t *testing.T) {
	s := newSite(t)
	s.pending("a")
	s.pass(500 * time.Millisecond)
	s.pending("b")
	s.pass(time.Second)
	if got := s.planner.take(); len(got) != 0 {
		t.Fatal("a batch was sent while pods were still coming")
	}
	s.planner.seen = func() {
		if held := s.outbox(); held.State != outbox.Sent || held.Seq != 1 {
			t.Errorf("the planner is told while the outbox is %s %d", held.State, held.Seq)
		}
	}
	s.pass(500 * time.Millisecond)
	_, batch := s.batch()
	if batch.Seq != 1 || len(batch.Pending) != 1 || len(batch.Pending[0].Pods) != 2 || batch.Snapshot.Catalogue.IsZero() || batch.Snapshot.UID != "uid" {
		t.Errorf("the batch is %+v", batch)
	}
	if got := s.outbox(); got.Epoch != 1 {
		t.Errorf("the epoch is %d", got.Epoch)
	}
}

// What is in flight is sent again unchanged, by whoever leads, until it is
// answered.
func TestResend(t *testing.T) {
	s := newSite(t)
	s.planner.err = fault.E("sending", fault.Unknown, nil)
	s.pending("a")
	s.cache.Flush()
	for range 4 {
		s.now = s.now.Add(watcher.StepInterval)
		_ = s.svc.Step(t.Context())
	}
	if held := s.outbox(); held.State != outbox.Sent {
		t.Fatalf("the outbox is %s", held.State)
	}
	s.planner.err = nil
	s.pass(watcher.StepInterval)
	first, _ := s.batch()
	s.pending("b")
	s.pass(14 * time.Second)
	if got := s.planner.take(); len(got) != 0 {
		t.Fatalf("%d messages within 15 s", len(got))
	}
	s.pass(2 * time.Second)
	again, _ := s.batch()
	if again.ID != first.ID || string(again.Data) != string(first.Data) {
		t.Error("the same batch is another event")
	}
	s.restart("pod-2")
	s.now = s.now.Add(lease.Duration)
	s.pass(lease.Duration + time.Second)
	if third, _ := s.batch(); third.ID != first.ID {
		t.Error("another leader sent another batch")
	}
}

// A batch without a plan is given up after 90 s; the next has every pod, and a
// late plan of the first no longer fits.
func TestGiveUp(t *testing.T) {
	s := newSite(t)
	s.pending("a")
	s.pass(2 * time.Second)
	s.pending("b")
	s.pass(87 * time.Second)
	if seq := s.outbox().Seq; seq != 1 {
		t.Fatalf("after 89 s the outbox is at %d", seq)
	}
	s.planner.take()
	s.pass(4 * time.Second)
	_, batch := s.batch()
	if batch.Seq != 2 || len(batch.Pending[0].Pods) != 2 {
		t.Errorf("batch %d has %+v", batch.Seq, batch.Pending)
	}
}

func TestGiveUpWhenNobodyWaits(t *testing.T) {
	s := newSite(t)
	s.pending("a")
	s.pass(2 * time.Second)
	if err := s.DeletePod(t.Context(), cluster.Key{Namespace: "default", Name: "a"}, "", 0); err != nil {
		t.Fatal(err)
	}
	s.pass(95 * time.Second)
	if held := s.outbox(); held.Seq != 2 || held.State != outbox.Done || len(held.Claims) != 0 {
		t.Errorf("the outbox is %+v", held.Outbox)
	}
	s.planner.take()
	s.pass(time.Minute)
	if got := s.planner.take(); len(got) != 0 {
		t.Errorf("%d messages about nobody", len(got))
	}
}

func claim(name string, admitted bool) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	if admitted {
		c.Annotations["joist.sh/admitted"] = "2026-01-01T00:00:00Z"
	}
	return c
}

// While pods wait, batches go on; and at once when there is something new to
// choose from.
func TestLevelTriggered(t *testing.T) {
	s := newSite(t)
	s.pending("a")
	s.pass(2 * time.Second)
	s.batch()
	s.apply(outbox.Done)
	s.pass(27 * time.Second)
	if got := s.planner.take(); len(got) != 0 {
		t.Fatal("the same pod was planned again too soon")
	}
	s.pass(5 * time.Second)
	s.batch()
	s.apply(outbox.Done)
	// Another catalogue is news within seconds.
	s.publish(s.now)
	s.pass(7 * time.Second)
	s.batch()
}

func TestNoCatalogueYet(t *testing.T) {
	s := newSite(t)
	for _, key := range s.blobs.Keys() {
		s.blobs.Remove(key)
	}
	s.pending("a")
	s.cache.Flush()
	var err error
	for range 4 {
		s.now = s.now.Add(watcher.StepInterval)
		err = s.svc.Step(t.Context())
	}
	if !fault.Is(err, fault.Retry) || fault.HintOf(err) == "" || s.outbox().Seq != 0 {
		t.Errorf("%v, outbox at %d", err, s.outbox().Seq)
	}
	s.publish(s.now)
	s.pass(watcher.StepInterval)
	s.batch()
}

// Somebody else moved the outbox: look again, say nothing.
func TestLostSwap(t *testing.T) {
	s := newSite(t)
	s.pass(watcher.StepInterval)
	s.Inject(memcluster.Fault{Actor: "pod-1", Verb: memcluster.VerbUpdate, Kind: cluster.ConfigMaps, As: fault.Conflict, Times: 1})
	s.pending("a")
	s.pass(2 * watcher.StepInterval)
	if got := s.planner.take(); len(got) != 0 || s.outbox().State != outbox.Idle {
		t.Fatalf("%d messages after a lost swap, outbox %s", len(got), s.outbox().State)
	}
	s.pass(watcher.StepInterval)
	s.batch()
}

func TestQuestions(t *testing.T) {
	s := newSite(t)
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u", Generation: 3}}
	class.Spec.Role = "node"
	s.Seed(class)
	types := func(d time.Duration) map[event.Type]int {
		t.Helper()
		s.catalog.take()
		s.pass(d)
		out := map[event.Type]int{}
		for _, e := range s.catalog.take() {
			out[e.Type]++
		}
		return out
	}
	if diff := cmp.Diff(map[event.Type]int{event.NodeClassChangedType: 4, event.InventoryWantedType: 2}, types(time.Minute)); diff != "" {
		t.Errorf("in the first minute, not ready:\n%s", diff)
	}
	s.Change(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
		c := o.(*karpenter.EC2NodeClass)
		for _, kind := range []string{karpenter.ConditionTypeReady, karpenter.ConditionTypeSubnetsReady} {
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 3}, s.now)
		}
	})
	s.pass(15 * time.Second)
	if diff := cmp.Diff(map[event.Type]int{event.NodeClassChangedType: 2, event.InventoryWantedType: 4}, types(2*time.Minute)); diff != "" {
		t.Errorf("in two minutes, ready:\n%s", diff)
	}
	s.catalog.take()
	s.Change(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) { o.(*karpenter.EC2NodeClass).Spec.Role = "other" })
	s.pass(watcher.StepInterval)
	if got := s.catalog.take(); len(got) != 1 || got[0].Type != event.NodeClassChangedType {
		t.Errorf("after a change %d questions", len(got))
	}
}

// A question that could not be sent is asked again at the next look, and a class
// that cannot be asked for holds up nobody else.
func TestQuestionsThatFail(t *testing.T) {
	s := newSite(t)
	huge := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "a-huge-one"}}
	data := string(make([]byte, 64<<10)) // six bytes each in JSON
	huge.Spec.UserData = &data
	s.Seed(huge, &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	s.cache.Flush()
	s.catalog.err = fault.E("sending", fault.Retry, nil)
	if err := s.svc.Step(t.Context()); err == nil {
		t.Fatal("nobody hears of it")
	}
	s.catalog.err = nil
	s.now = s.now.Add(watcher.StepInterval)
	_ = s.svc.Step(t.Context())
	var subjects []string
	for _, e := range s.catalog.take() {
		subjects = append(subjects, e.Subject)
	}
	if diff := cmp.Diff([]string{"ec2nodeclass/default", "inventory"}, subjects); diff != "" {
		t.Error(diff)
	}
}

// A replica that stops leaves its place to the next at once.
func TestRelease(t *testing.T) {
	s := newSite(t)
	s.pass(time.Minute)
	if err := s.svc.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.catalog.take()
	s.restart("pod-2")
	s.pass(watcher.StepInterval)
	if got := s.catalog.take(); len(got) == 0 {
		t.Error("the next replica waits")
	}
}

// Beside Karpenter, or another replica, the watcher says nothing at all.
func TestOnlyTheLeaderActs(t *testing.T) {
	s := newSite(t)
	karpenters := lease.Lease{Key: cluster.Key{Namespace: namespace, Name: lease.KarpenterName}, Holder: "karpenter-1"}
	s.pending("a")
	for range 20 {
		if held, err := karpenters.Hold(t.Context(), s.Server, s.now); !held || err != nil {
			t.Fatalf("Karpenter lost its lease: %v", err)
		}
		s.pass(2 * time.Second)
	}
	if len(s.planner.take())+len(s.catalog.take())+len(s.disruption.take()) != 0 {
		t.Fatal("the watcher acts beside Karpenter")
	}
	if s.svc.Reconciled() {
		t.Error("the steps of who does not lead count as looks")
	}
	s.pass(lease.Duration + 5*time.Second)
	s.batch()
	if !s.svc.Reconciled() {
		t.Error("the leader's steps are no looks")
	}
}
