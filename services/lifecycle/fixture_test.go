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

var clusterIdentity = event.Cluster{Name: "prod", UID: "uid"}

// testCluster is lifecycle in a simulated cluster. Its methods act for other clients.
type testCluster struct {
	*memcluster.Server
	t        *testing.T
	svc      *lifecycle.Service
	cache    *memcluster.Cache
	blobs    *memblob.Store
	launcher *memqueue.Queue
	now      time.Time
}

func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	s := &testCluster{t: t, now: memcluster.Epoch}
	clock := func() time.Time { return s.now }
	s.Server = memcluster.New(memcluster.Options{Now: clock})
	s.blobs = memblob.New(memblob.Options{Now: clock})
	s.launcher = memqueue.New(memqueue.Options{Now: clock}).Queue("launcher", memqueue.QueueOptions{})
	s.cache = s.NewCache(memcluster.CacheOptions{Trim: lifecycle.Trims(), FindMutated: true})
	s.SeedObjects(&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	s.cache.DeliverAll()
	s.restartService()
	return s
}

// restartService starts a new process without any state in memory.
func (s *testCluster) restartService() { s.startService(s.ClientFor("lifecycle")) }

// crashAtWrite starts a process that crashes at its nth write; later writes have no effect. done
// reports that the nth write still takes effect.
func (s *testCluster) crashAtWrite(n int, done bool) {
	s.startService(&crashingClient{Client: s.ClientFor("lifecycle"), writesLeft: n, completesLast: done})
}

func (s *testCluster) startService(client cluster.Client, changes ...func(*lifecycle.Config)) {
	config := lifecycle.Config{
		Client: client, Cache: s.cache, Blobs: s.blobs, Launcher: s.launcher, Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Region: "eu-west-1",
		VerifySettled: true, Now: func() time.Time { return s.now },
	}
	for _, change := range changes {
		change(&config)
	}
	s.svc = lifecycle.New(config)
}

// crashingClient fails after some writes. Leases do not count.
type crashingClient struct {
	cluster.Client
	writesLeft    int
	completesLast bool
}

var errCrashed = fault.E("writing", fault.Unknown, errors.New("the process has crashed"))

func (m *crashingClient) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return m.write(o, func() (cluster.Object, error) { return m.Client.Create(ctx, o) })
}

func (m *crashingClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return m.write(o, func() (cluster.Object, error) { return m.Client.Update(ctx, o) })
}

func (m *crashingClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return m.write(o, func() (cluster.Object, error) { return m.Client.UpdateStatus(ctx, o) })
}

func (m *crashingClient) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	_, err := m.write(nil, func() (cluster.Object, error) { return nil, m.Client.Delete(ctx, kind, key, uid) })
	return err
}

func (m *crashingClient) DeleteAsRead(ctx context.Context, kind cluster.Kind, o cluster.Object) error {
	_, err := m.write(nil, func() (cluster.Object, error) { return nil, m.Client.DeleteAsRead(ctx, kind, o) })
	return err
}

func (m *crashingClient) write(o cluster.Object, write func() (cluster.Object, error)) (cluster.Object, error) {
	if _, lease := o.(*coordinationv1.Lease); lease {
		return write()
	}
	if m.writesLeft--; m.writesLeft >= 0 {
		return write()
	}
	if m.writesLeft == -1 && m.completesLast {
		_, _ = write()
	}
	return nil, errCrashed
}

// reconcile delivers the watch events and runs one Step.
func (s *testCluster) reconcile() {
	s.t.Helper()
	s.cache.DeliverAll()
	if err := s.svc.Step(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if changed := s.cache.ListMutated(); len(changed) > 0 {
		s.t.Fatalf("objects of the cache were mutated: %v", changed)
	}
}

// advance advances the time in steps of a second.
func (s *testCluster) advance(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(time.Second)
		s.reconcile()
	}
}

// newMessage returns a message as its producer would send it now.
func (s *testCluster) newMessage(body event.Body) event.Envelope {
	s.t.Helper()
	e, err := event.Maker{Service: "test", Cluster: clusterIdentity}.New(s.now, body, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// handleMessage handles a message and expects an error of this kind, "" for none.
func (s *testCluster) handleMessage(e event.Envelope, want fault.Kind) {
	s.t.Helper()
	s.cache.DeliverAll()
	if err := s.svc.Handle(s.t.Context(), e); fault.KindOf(err) != want {
		s.t.Fatalf("handling %s: got error kind %q (%v), want %q", e.Type, fault.KindOf(err), err, want)
	}
}

// takeSent receives all messages to the launcher.
func (s *testCluster) takeSent() []event.Envelope {
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

// typesAndSubjects returns the messages as "type subject".
func typesAndSubjects(envelopes []event.Envelope) []string {
	var out []string
	for _, e := range envelopes {
		out = append(out, fmt.Sprintf("%s %s", e.Type, e.Subject))
	}
	return out
}

func (s *testCluster) readOutbox() outbox.Stored {
	s.t.Helper()
	held, err := outbox.Read(s.t.Context(), s.Server, namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	return held
}

// startBatch starts the next batch in the outbox, as the watcher does.
func (s *testCluster) startBatch() outbox.Stored {
	s.t.Helper()
	held := s.readOutbox()
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

// planIntent stores an intent for n claims of the default pool, as a planner does.
func (s *testCluster) planIntent(held outbox.Stored, id string, n int) planning.PlannedIntent {
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

// planMessage stores a plan of the batch and returns its message.
func (s *testCluster) planMessage(held outbox.Stored, intents ...planning.PlannedIntent) event.Envelope {
	s.t.Helper()
	return s.planMadeMessage(held, planning.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: intents})
}

func (s *testCluster) planMadeMessage(held outbox.Stored, plan planning.Plan) event.Envelope {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, planning.PlanKind, plan)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.newMessage(event.PlanMade{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Plan: ref})
}

// launchIntent admits one intent of n claims and drops the sent messages.
func (s *testCluster) launchIntent(id string, n int) {
	s.t.Helper()
	held := s.startBatch()
	s.handleMessage(s.planMessage(held, s.planIntent(held, id, n)), "")
	s.takeSent()
}

// launchSettled returns the launch result of an intent: these instances of the wanted number.
func launchSettled(id string, wanted int, instances ...string) event.LaunchSettled {
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

func (s *testCluster) listClaims() []*karpenter.NodeClaim {
	s.t.Helper()
	claims, err := cluster.List[*karpenter.NodeClaim](s.t.Context(), s.Server, cluster.NodeClaims)
	if err != nil {
		s.t.Fatal(err)
	}
	return claims
}

// getClaim returns one claim, or nil.
func (s *testCluster) getClaim(name string) *karpenter.NodeClaim {
	s.t.Helper()
	for _, c := range s.listClaims() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// boundInstances returns each claim's instance, "" if it has no instance.
func (s *testCluster) boundInstances() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, c := range s.listClaims() {
		out[c.Name] = ""
		if id, err := c.Instance(); err == nil {
			out[c.Name] = id.InstanceID
		}
	}
	return out
}

// joinNode registers a ready node of the instance, as its kubelet does.
func (s *testCluster) joinNode(name, instance string) {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Spec.ProviderID = "aws:///eu-west-1a/" + instance
	node.Spec.Taints = []corev1.Taint{karpenter.UnregisteredTaint()}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.SeedObjects(node)
}

// inventoryMessage stores an inventory of these instances and returns its message.
func (s *testCluster) inventoryMessage(started time.Time, instances ...event.Listed) event.Envelope {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, event.InventoryKind, event.Inventory{Started: started, Instances: instances})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.newMessage(event.InstancesListed{Started: started, Inventory: ref, Count: len(instances)})
}

func (s *testCluster) unavailableOfferings() []planning.Unavailable {
	s.t.Helper()
	object, err := s.Get(s.t.Context(), cluster.ConfigMaps, cluster.Key{Namespace: namespace, Name: planning.UnavailableConfigMapName})
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

// configureService starts a new process with another configuration.
func (s *testCluster) configureService(change func(*lifecycle.Config)) {
	s.t.Helper()
	config := lifecycle.Config{
		Client: s.ClientFor("lifecycle"), Cache: s.cache, Blobs: s.blobs, Launcher: s.launcher, Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Region: "eu-west-1",
		VerifySettled: true, Now: func() time.Time { return s.now },
	}
	change(&config)
	s.svc = lifecycle.New(config)
}
