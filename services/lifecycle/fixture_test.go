package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

const namespace = "kube-system"

var home = event.Cluster{Name: "prod", UID: "uid"}

// site is lifecycle in a modelled cluster. Its own calls are the test's hand.
type site struct {
	*memcluster.Server
	t        *testing.T
	svc      *lifecycle.Service
	cache    *memcluster.Cache
	blobs    *memblob.Store
	launcher *memqueue.Queue
	now      time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, now: memcluster.Epoch}
	clock := func() time.Time { return s.now }
	s.Server = memcluster.New(memcluster.Options{Now: clock})
	s.blobs = memblob.New(memblob.Options{Now: clock})
	s.launcher = memqueue.New(memqueue.Options{Now: clock}).Queue("launcher", memqueue.QueueOptions{})
	s.cache = s.NewCache(memcluster.CacheOptions{})
	s.Seed(&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	s.cache.Flush()
	s.restart()
	return s
}

// restart is a new process: it remembers nothing.
func (s *site) restart() { s.start(s.As("lifecycle")) }

// crashAt is a new process that dies at its nth write from now on: nothing that
// it does afterwards arrives. done says that the nth itself still does.
func (s *site) crashAt(n int, done bool) {
	s.start(&mortal{Client: s.As("lifecycle"), left: n, done: done})
}

func (s *site) start(client cluster.Client, changes ...func(*lifecycle.Config)) {
	config := lifecycle.Config{
		Client: client, Cache: s.cache, Blobs: s.blobs, Launcher: s.launcher, Cluster: home,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Region: "eu-west-1",
		Now: func() time.Time { return s.now },
	}
	for _, change := range changes {
		change(&config)
	}
	s.svc = lifecycle.New(config)
}

// mortal is a client that stops to work after some writes. Leases do not count.
type mortal struct {
	cluster.Client
	left int
	done bool
}

var errDead = fault.E("writing", fault.Unknown, errors.New("the process is dead"))

func (m *mortal) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return m.write(o, func() (cluster.Object, error) { return m.Client.Create(ctx, o) })
}

func (m *mortal) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return m.write(o, func() (cluster.Object, error) { return m.Client.Update(ctx, o) })
}

func (m *mortal) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return m.write(o, func() (cluster.Object, error) { return m.Client.UpdateStatus(ctx, o) })
}

func (m *mortal) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	_, err := m.write(nil, func() (cluster.Object, error) { return nil, m.Client.Delete(ctx, kind, key, uid) })
	return err
}

func (m *mortal) DeleteAsRead(ctx context.Context, kind cluster.Kind, o cluster.Object) error {
	_, err := m.write(nil, func() (cluster.Object, error) { return nil, m.Client.DeleteAsRead(ctx, kind, o) })
	return err
}

func (m *mortal) write(o cluster.Object, write func() (cluster.Object, error)) (cluster.Object, error) {
	if _, lease := o.(*coordinationv1.Lease); lease {
		return write()
	}
	if m.left--; m.left >= 0 {
		return write()
	}
	if m.left == -1 && m.done {
		_, _ = write()
	}
	return nil, errDead
}

// step lets the watches arrive and lifecycle look once.
func (s *site) step() {
	s.t.Helper()
	s.cache.Flush()
	if err := s.svc.Step(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if changed := s.cache.Mutated(); len(changed) > 0 {
		s.t.Fatalf("objects of the cache were changed: %v", changed)
	}
}

// pass lets that much time pass in steps of a second.
func (s *site) pass(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(time.Second)
		s.step()
	}
}

// message makes a fact as its producer would, now.
func (s *site) message(body event.Body) event.Envelope {
	s.t.Helper()
	e, err := event.Maker{Service: "test", Cluster: home}.New(s.now, body, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// handle takes a fact and expects an error of the kind, "" for none.
func (s *site) handle(e event.Envelope, want fault.Kind) {
	s.t.Helper()
	s.cache.Flush()
	if err := s.svc.Handle(s.t.Context(), e); fault.KindOf(err) != want {
		s.t.Fatalf("handling %s: %q (%v), want %q", e.Type, fault.KindOf(err), err, want)
	}
}

// sent takes all messages to the launcher.
func (s *site) sent() []event.Envelope {
	s.t.Helper()
	var out []event.Envelope
	for {
		messages, err := s.launcher.Receive(s.t.Context(), 10, 0, time.Hour)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(messages) == 0 {
			return out
		}
		for _, m := range messages {
			e, err := event.Decode(m.Body)
			if err != nil {
				s.t.Fatal(err)
			}
			out = append(out, e)
			if err := s.launcher.Delete(s.t.Context(), m.Receipt); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// words are the bodies of what was sent, as "type subject".
func words(envelopes []event.Envelope) []string {
	var out []string
	for _, e := range envelopes {
		out = append(out, fmt.Sprintf("%s %s", e.Type, e.Subject))
	}
	return out
}

func (s *site) outbox() outbox.Held {
	s.t.Helper()
	held, err := outbox.Read(s.t.Context(), s.Server, namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	return held
}

// batch moves the outbox on to the next batch, as the watcher does.
func (s *site) batch() outbox.Held {
	s.t.Helper()
	held := s.outbox()
	next := outbox.Outbox{Epoch: 1, Seq: held.Seq + 1, State: outbox.Sent, Batch: event.Ref{
		Kind: planning.BatchKind, Digest: event.DigestOf([]byte(strconv.FormatUint(held.Seq, 10))), Size: 1,
	}}
	held, err := held.Swap(s.t.Context(), s.Server, next)
	if err != nil {
		s.t.Fatal(err)
	}
	return held
}

func cpu(n string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(n)} }

// planned writes an intent for n claims of the default pool, as a planner does.
func (s *site) planned(held outbox.Held, id string, n int) planning.PlannedIntent {
	s.t.Helper()
	intent := launchspec.Intent{
		ID: id, Cluster: "prod", NodePool: "default",
		Fleet: cloud.FleetRequest{Token: id, Count: n, CapacityType: cloud.Spot},
		Types: map[string]launchspec.TypeFacts{"m6i.large": {
			Capacity: cpu("2"), Allocatable: cpu("1900m"), Labels: map[string]string{"kubernetes.io/arch": "amd64"},
			ZoneIDs: map[string]string{"eu-west-1a": "euw1-az1"},
		}},
		Prices: map[string]float64{"m6i.large/eu-west-1a": 0.0301},
	}
	for slot := range n {
		intent.Claims = append(intent.Claims, fmt.Sprintf("%s-%d", id, slot))
	}
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, launchspec.Kind, intent)
	if err != nil {
		s.t.Fatal(err)
	}
	out := planning.PlannedIntent{ID: id, Ref: ref, NodePool: "default"}
	for _, name := range intent.Claims {
		c := karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, Finalizers: []string{karpenter.TerminationFinalizer}, Labels: map[string]string{karpenter.NodePoolLabelKey: "default"},
			Annotations: map[string]string{
				launchspec.IntentTag: id, launchspec.IntentRefAnnotation: launchspec.FormatRef(ref),
				launchspec.BatchAnnotation:  fmt.Sprintf("%s/%d", held.UID(), held.Seq),
				launchspec.ClaimsAnnotation: strconv.Itoa(n), launchspec.CeilingAnnotation: `{"cpu":"2","joist.sh/microdollars-per-hour":"30100"}`,
			},
		}}
		ceiling := cpu("2")
		ceiling[planning.PriceResource] = resource.MustParse("30100")
		out.Claims = append(out.Claims, planning.PlannedClaim{Object: c, Ceiling: ceiling, Pods: 1})
	}
	return out
}

// plan stores a plan of the batch and makes the fact about it.
func (s *site) plan(held outbox.Held, intents ...planning.PlannedIntent) event.Envelope {
	s.t.Helper()
	return s.planMade(held, planning.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: intents})
}

func (s *site) planMade(held outbox.Held, plan planning.Plan) event.Envelope {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, planning.PlanKind, plan)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.message(event.PlanMade{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Plan: ref})
}

// launched admits one intent of n claims, and forgets what was sent.
func (s *site) launched(id string, n int) {
	s.t.Helper()
	held := s.batch()
	s.handle(s.plan(held, s.planned(held, id, n)), "")
	s.sent()
}

// settled is how an intent ended: with these instances, of those wanted.
func settled(id string, wanted int, instances ...string) event.LaunchSettled {
	out := event.LaunchSettled{Intent: id, Wanted: wanted, Spent: true}
	for _, i := range instances {
		out.Instances = append(out.Instances, event.Launched{InstanceID: i, ImageID: "ami-1", Offering: offering})
	}
	if len(instances) < wanted {
		out.Refusals = []event.Refusal{{Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{offering}}}
	}
	return out
}

var offering = event.Offering{InstanceType: "m6i.large", Zone: "eu-west-1a", CapacityType: cloud.Spot}

func (s *site) claims() []*karpenter.NodeClaim {
	s.t.Helper()
	claims, err := cluster.List[*karpenter.NodeClaim](s.t.Context(), s.Server, cluster.NodeClaims)
	if err != nil {
		s.t.Fatal(err)
	}
	return claims
}

// claim reads one claim; nil when it is gone.
func (s *site) claim(name string) *karpenter.NodeClaim {
	s.t.Helper()
	for _, c := range s.claims() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// bound tells each claim's instance, "" for none.
func (s *site) bound() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, c := range s.claims() {
		out[c.Name] = ""
		if id, err := c.Instance(); err == nil {
			out[c.Name] = id.InstanceID
		}
	}
	return out
}

// join lets the instance's kubelet register a node that is ready.
func (s *site) join(name, instance string) {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Spec.ProviderID = "aws:///eu-west-1a/" + instance
	node.Spec.Taints = []corev1.Taint{karpenter.UnregisteredTaint()}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.Seed(node)
}

// inventory stores what EC2 shows and makes the fact about it.
func (s *site) inventory(started time.Time, instances ...event.Listed) event.Envelope {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, event.InventoryKind, event.Inventory{Started: started, Instances: instances})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.message(event.InstancesListed{Started: started, Inventory: ref, Count: len(instances)})
}

func (s *site) unavailable() []planning.Unavailable {
	s.t.Helper()
	object, err := s.Get(s.t.Context(), cluster.ConfigMaps, cluster.Key{Namespace: namespace, Name: planning.UnavailableName})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	var out []planning.Unavailable
	if err := json.Unmarshal([]byte(object.(*corev1.ConfigMap).Data[planning.UnavailableKey]), &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}
