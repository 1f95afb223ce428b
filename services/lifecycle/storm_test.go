package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// remoteClient adds latency and the rate limits of kubecluster's client: evictions and Events have
// their own limits.
type remoteClient struct {
	cluster.Client
	latency time.Duration
	calls   rateLimiter
	evicts  rateLimiter
	reports rateLimiter
	onEvict func(ctx context.Context) error
	writes  chan struct{}

	mu sync.Mutex
	// callCounts counts the calls except evictions and Events, as "verb Kind".
	callCounts map[string]int
	tainted    map[string]time.Time
	evicted    map[string]bool
	// deleted is when each pod was first deleted.
	deleted map[string]time.Time
	// reportedStuck are the nodes that were reported as failing to drain.
	reportedStuck map[string]time.Time
}

// rateLimiter allows a number of calls a second with a burst.
type rateLimiter struct {
	mu   sync.Mutex
	next time.Time
}

func (p *rateLimiter) wait(perSecond, burst int) {
	p.mu.Lock()
	each := time.Second / time.Duration(perSecond)
	if rested := time.Now().Add(-time.Duration(burst) * each); p.next.Before(rested) {
		p.next = rested
	}
	p.next = p.next.Add(each)
	wait := time.Until(p.next)
	p.mu.Unlock()
	time.Sleep(wait)
}

func (d *remoteClient) call(what string) {
	d.mu.Lock()
	if d.callCounts == nil {
		d.callCounts = map[string]int{}
	}
	d.callCounts[what]++
	d.mu.Unlock()
	d.calls.wait(1000, 1000)
	time.Sleep(d.latency)
}

// delayList adds the time for encoding and decoding a list.
func (d *remoteClient) delayList(objects []cluster.Object, err error) ([]cluster.Object, error) {
	const each = 100 * time.Microsecond
	time.Sleep(time.Duration(len(objects)) * each)
	return objects, err
}

func callName(does string, o cluster.Object) string {
	kind, _ := cluster.KindOf(o)
	return does + " " + kind.Kind
}

func (d *remoteClient) signalWrite() {
	select {
	case d.writes <- struct{}{}:
	default:
	}
}

func (d *remoteClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	d.call("get " + kind.Kind)
	return d.Client.Get(ctx, kind, key)
}

func (d *remoteClient) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	d.call("list " + kind.Kind)
	return d.delayList(d.Client.List(ctx, kind, namespace))
}

func (d *remoteClient) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	d.call("list some " + kind.Kind)
	return d.delayList(d.Client.ListBy(ctx, kind, index, value))
}

func (d *remoteClient) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	d.call(callName("create", o))
	defer d.signalWrite()
	return d.Client.Create(ctx, o)
}

func (d *remoteClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	d.call(callName("update", o))
	defer d.signalWrite()
	stored, err := d.Client.Update(ctx, o)
	if node, ok := stored.(*corev1.Node); ok && err == nil && slices.Contains(node.Spec.Taints, karpenter.DisruptedTaint()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if _, before := d.tainted[node.Name]; !before {
			d.tainted[node.Name] = time.Now()
		}
	}
	return stored, err
}

func (d *remoteClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	d.call(callName("updatestatus", o))
	defer d.signalWrite()
	return d.Client.UpdateStatus(ctx, o)
}

func (d *remoteClient) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	d.call("delete " + kind.Kind)
	defer d.signalWrite()
	return d.Client.Delete(ctx, kind, key, uid)
}

func (d *remoteClient) DeleteAsRead(ctx context.Context, kind cluster.Kind, o cluster.Object) error {
	d.call("delete " + kind.Kind)
	defer d.signalWrite()
	return d.Client.DeleteAsRead(ctx, kind, o)
}

func (d *remoteClient) Evict(ctx context.Context, pod cluster.Key, uid types.UID) error {
	d.evicts.wait(200, 300)
	if err := d.onEvict(ctx); err != nil {
		return err
	}
	defer d.signalWrite()
	err := d.Client.Evict(ctx, pod, uid)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.evicted[pod.Name] = err == nil
	return err
}

func (d *remoteClient) DeletePod(ctx context.Context, pod cluster.Key, uid types.UID, graceSeconds int64) error {
	d.call("delete Pod")
	defer d.signalWrite()
	d.mu.Lock()
	if _, before := d.deleted[pod.Name]; !before {
		d.deleted[pod.Name] = time.Now()
	}
	d.mu.Unlock()
	return d.Client.DeletePod(ctx, pod, uid, graceSeconds)
}

func (d *remoteClient) Report(ctx context.Context, e cluster.Event) error {
	d.reports.wait(200, 300)
	time.Sleep(d.latency)
	if e.Reason == "FailedDraining" && e.Kind == cluster.Nodes {
		d.mu.Lock()
		defer d.mu.Unlock()
		if _, before := d.reportedStuck[e.About.GetName()]; !before {
			d.reportedStuck[e.About.GetName()] = time.Now()
		}
	}
	return d.Client.Report(ctx, e)
}

// newFleet creates running claims, each with a node and that many pods.
func newFleet(server *memcluster.Server, n, pods int) {
	for i := range n {
		name := fmt.Sprintf("c%03d", i)
		c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Finalizers: []string{karpenter.TerminationFinalizer},
			Labels:      map[string]string{karpenter.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m6i.large", corev1.LabelTopologyZone: "eu-west-1a", karpenter.CapacityTypeLabelKey: "spot"},
			Annotations: map[string]string{karpenter.InstanceTaggedAnnotationKey: "true"},
		}}
		c.Status.ProviderID, c.Status.NodeName = "aws:///eu-west-1a/i-"+name, "n"+name
		for _, kind := range []string{karpenter.ConditionTypeLaunched, karpenter.ConditionTypeRegistered, karpenter.ConditionTypeInitialized} {
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}, time.Now())
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "n" + name, Finalizers: []string{karpenter.TerminationFinalizer},
			Labels: map[string]string{karpenter.NodeRegisteredLabelKey: "true", karpenter.NodeInitializedLabelKey: "true"},
		}}
		node.Spec.ProviderID = c.Status.ProviderID
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		server.SeedObjects(c, node)
		for j := range pods {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, j)}}
			pod.Spec.NodeName = node.Name
			pod.Status.Phase = corev1.PodRunning
			server.SeedObjects(pod)
		}
	}
}

// storm is an interruption of many nodes at once.
type storm struct {
	nodes int
	// notice is the time from the notices to their deadline, and observed how long lifecycle runs after the notices.
	notice, observed time.Duration
}

// measureStorm interrupts nodes at once and returns how long each waited for its taint.
func measureStorm(t *testing.T, s storm, d *remoteClient) []time.Duration {
	t.Helper()
	server := memcluster.New(memcluster.Options{Now: time.Now})
	blobs := memblob.New(memblob.Options{Now: time.Now})
	launcher := memqueue.New(memqueue.Options{Now: time.Now}).Queue("launcher", memqueue.QueueOptions{})
	n := s.nodes
	newFleet(server, n, 10)
	cache := server.NewCache(memcluster.CacheOptions{Trim: lifecycle.Trims()})
	d.Client, d.writes = server.ClientFor("lifecycle"), make(chan struct{}, 1)
	d.tainted, d.evicted, d.deleted = map[string]time.Time{}, map[string]bool{}, map[string]time.Time{}
	d.reportedStuck = map[string]time.Time{}
	service := lifecycle.New(lifecycle.Config{
		Client: d, Cache: cache, Blobs: blobs, Launcher: launcher, Cluster: clusterIdentity, Namespace: namespace, KarpenterNamespace: namespace,
		Holder: "pod-1", Region: "eu-west-1", Parallel: 32, Rest: lifecycle.ReconcileInterval, Now: time.Now,
	})
	gate := host.NewMutex()
	lanes := service.ConcurrentHandler(gate)
	ctx, stop := context.WithCancel(t.Context())
	loop := host.Loop{Reconcile: gate.WrapLocked(func(ctx context.Context) error {
		cache.DeliverAll()
		return service.Step(ctx)
	}), Interval: lifecycle.ReconcileInterval, NextDue: service.NextRetry, Changed: d.writes}
	var running sync.WaitGroup
	running.Go(func() { _ = loop.Run(ctx) })
	time.Sleep(10 * time.Second)
	began := time.Now()
	var obeyed sync.WaitGroup
	for i := range n {
		body := event.NodeNoticed{InstanceID: fmt.Sprintf("i-c%03d", i), Kind: event.SpotInterruption, Noticed: began, Deadline: began.Add(s.notice)}
		e, err := event.Maker{Service: "test", Cluster: clusterIdentity}.New(began, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		obeyed.Go(func() {
			if err := lanes(ctx, e); err != nil {
				t.Errorf("notice %d: %v", i, err)
			}
		})
	}
	obeyed.Wait()
	handled := time.Since(began)
	time.Sleep(s.observed)
	stop()
	running.Wait()
	time.Sleep(time.Minute)
	var waits []time.Duration
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.tainted {
		waits = append(waits, at.Sub(began))
	}
	slices.Sort(waits)
	if len(waits) < n {
		t.Fatalf("of %d nodes only %d are tainted", n, len(waits))
	}
	for name, at := range d.reportedStuck {
		if after := at.Sub(d.tainted[name]); after > 30*time.Second {
			t.Errorf("%s was reported as stuck %s after its taint", name, after)
		}
	}
	t.Logf("%d notices at once, %d pods: handled in %s; notice to taint p50 %s, p99 %s, worst %s; %d pods evicted, %d nodes reported as stuck",
		n, 10*n, handled.Round(time.Millisecond), waits[n/2].Round(time.Millisecond), waits[n*99/100].Round(time.Millisecond), waits[n-1].Round(time.Millisecond), len(d.evicted), len(d.reportedStuck))
	return waits
}

// With many notices at once, p99 from the notice to the taint is below 5 s, even with ten times as
// many evictions. A blocked drain is reported within 30 s of the taint.
func TestManyNotices(t *testing.T) {
	answers := func(takes time.Duration) func(context.Context) error {
		return func(context.Context) error { time.Sleep(takes); return nil }
	}
	for _, test := range []struct {
		name     string
		takes    time.Duration
		evicting func(context.Context) error
		evicted  int
		stuck    bool
	}{
		{"fast API server", 5 * time.Millisecond, answers(5 * time.Millisecond), 1500, false},
		{"evictions are not answered", 5 * time.Millisecond, func(ctx context.Context) error {
			<-ctx.Done()
			return fault.E("evicting", fault.Unknown, ctx.Err())
		}, 0, true},
		{"evictions are refused", 5 * time.Millisecond, func(context.Context) error {
			return fault.E("evicting", fault.Throttled, errors.New("a budget"))
		}, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &remoteClient{latency: test.takes, onEvict: test.evicting}
				waits := measureStorm(t, storm{nodes: 150, notice: 2 * time.Minute, observed: 40 * time.Second}, d)
				if p99 := waits[len(waits)*99/100]; p99 > 5*time.Second {
					t.Errorf("p99 is %s", p99)
				}
				if got := len(d.reportedStuck) == 150; got != test.stuck || !got && len(d.reportedStuck) > 0 {
					t.Errorf("%d drains are reported as stuck", len(d.reportedStuck))
				}
				if len(d.evicted) < test.evicted {
					t.Errorf("%d pods were evicted", len(d.evicted))
				}
			})
		})
	}
}

// The grace periods of 1,000 pods on 100 nodes begin within 3 s of each other, also if evictions hang: 32 workers need
// 1,000 * 2 calls * 20 ms / 32 = 1.25 s.
func TestForcedDeletionsDoNotWaitForEvictions(t *testing.T) {
	for name, evict := range map[string]func(context.Context) error{
		"evictions are refused": func(context.Context) error { return fault.E("evicting", fault.Throttled, errors.New("a budget")) },
		"evictions are refused after ten seconds": func(context.Context) error {
			time.Sleep(10 * time.Second)
			return fault.E("evicting", fault.Throttled, errors.New("a budget"))
		},
		"evictions are not answered": func(ctx context.Context) error {
			<-ctx.Done()
			return fault.E("evicting", fault.Unknown, ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &remoteClient{latency: 20 * time.Millisecond, onEvict: evict}
				measureStorm(t, storm{nodes: 100, notice: time.Minute, observed: 50 * time.Second}, d)
				times := slices.SortedFunc(maps.Values(d.deleted), time.Time.Compare)
				if len(times) < 1000 {
					t.Fatalf("%d of 1,000 pods are deleted 10 s before the deadline", len(times))
				}
				took := times[len(times)-1].Sub(times[0])
				t.Logf("the grace period of the last pod begins %s after that of the first", took)
				if took > 3*time.Second {
					t.Error("forced deletions wait for evictions")
				}
			})
		})
	}
}
