package lifecycle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// launchingCluster is lifecycle as deployed with an API server that takes 5 ms for a call, and a launcher that answers
// each request after 200 ms.
type launchingCluster struct {
	*testCluster
	*remoteClient
	handle    func(context.Context, event.Envelope) error
	requested []time.Time
}

func newLaunchingCluster(ctx context.Context, t *testing.T, running *sync.WaitGroup) *launchingCluster {
	s := &testCluster{t: t, now: time.Now()}
	s.Server = memcluster.New(memcluster.Options{Now: time.Now})
	s.blobs = memblob.New(memblob.Options{Now: time.Now})
	s.launcher = memqueue.New(memqueue.Options{Now: time.Now}).Queue("launcher", memqueue.QueueOptions{})
	s.cache = s.NewCache(memcluster.CacheOptions{Trim: lifecycle.Trims(), FindMutated: true})
	pool := &karpenter.NodePool{}
	pool.Name = "default"
	s.SeedObjects(pool)
	x := &launchingCluster{testCluster: s, remoteClient: &remoteClient{
		Client: s.ClientFor("lifecycle"), latency: 5 * time.Millisecond, writes: make(chan struct{}, 1), tainted: map[string]time.Time{}, reportedStuck: map[string]time.Time{},
	}}
	s.svc = lifecycle.New(lifecycle.Config{
		Client: x.remoteClient, Cache: s.cache, Blobs: s.blobs, Launcher: s.launcher, Cluster: clusterIdentity, Namespace: namespace, KarpenterNamespace: namespace,
		Holder: "pod-1", Region: "eu-west-1", Parallel: 32, Rest: lifecycle.ReconcileInterval, Now: time.Now,
	})
	gate := host.NewMutex()
	x.handle = s.svc.ConcurrentHandler(gate)
	loop := host.Loop{Reconcile: gate.WrapLocked(func(ctx context.Context) error {
		s.cache.DeliverAll()
		return s.svc.Step(ctx)
	}), Interval: lifecycle.ReconcileInterval, NextDue: s.svc.NextRetry, Changed: x.writes}
	running.Go(func() { _ = loop.Run(ctx) })
	running.Go(func() { x.launch(ctx, running) })
	time.Sleep(5 * time.Second)
	return x
}

// launch answers the requests for launches, each intent once.
func (x *launchingCluster) launch(ctx context.Context, running *sync.WaitGroup) {
	known := map[string]bool{}
	for ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		messages, err := x.launcher.Receive(ctx, 10, 0, time.Minute)
		if err != nil {
			return
		}
		for _, m := range messages {
			e, err := event.Decode(m.Body)
			if err != nil || e.Type != event.LaunchRequestedType {
				continue
			}
			request, err := event.DecodeBody[event.LaunchRequested](e)
			if err != nil || known[request.Intent] {
				continue
			}
			known[request.Intent] = true
			x.requested = append(x.requested, time.Now())
			var instances []string
			for i := range request.Claims {
				instances = append(instances, fmt.Sprintf("i-%s-%d", request.Intent, i))
			}
			answer := newEnvelope(x.t, launchSettled(request.Intent, request.Claims, instances...))
			running.Go(func() {
				time.Sleep(200 * time.Millisecond)
				if err := x.handle(ctx, answer); err != nil {
					x.t.Errorf("handling the launch of %s: %v", request.Intent, err)
				}
			})
		}
	}
}

// countClaims counts the claims for which is is true.
func (x *launchingCluster) countClaims(is func(*karpenter.NodeClaim) bool) (n int) {
	for _, c := range x.listClaims() {
		if is(c) {
			n++
		}
	}
	return n
}

// await waits until all claims are so, and returns how long it took since began.
func (x *launchingCluster) await(what string, n int, began time.Time, is func(*karpenter.NodeClaim) bool) time.Duration {
	for x.countClaims(is) < n {
		time.Sleep(50 * time.Millisecond)
		if time.Since(began) > 5*time.Minute {
			x.t.Fatalf("%d of %d claims are %s after five minutes", x.countClaims(is), n, what)
		}
	}
	return time.Since(began)
}

// A plan of 1,000 nodes in 50 intents is launched within seconds of simulated time, with few writes for each node.
func TestManyLaunches(t *testing.T) {
	first := newTestCluster(t)
	first.planIntent(first.startBatch(), "first", 1) // The first document creates an encoder, which may not belong to the simulated time.
	synctest.Test(t, func(t *testing.T) {
		const intents, each = 50, 20
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		x := newLaunchingCluster(ctx, t, &running)
		x.now = time.Now()
		held := x.startBatch()
		var planned []planning.PlannedIntent
		for i := range intents {
			planned = append(planned, x.planIntent(held, fmt.Sprintf("intent%02d", i), each))
		}
		plan := x.planMessage(held, planned...)
		began := time.Now()
		if err := x.handle(ctx, plan); err != nil {
			t.Error(err)
		}
		bound := x.await("bound", intents*each, began, func(c *karpenter.NodeClaim) bool { return c.Status.ProviderID != "" })
		for _, c := range x.listClaims() {
			instance, _ := c.Instance()
			x.joinNode("n-"+c.Name, instance.InstanceID)
		}
		x.signalWrite()
		ready := x.await("initialized", intents*each, began, func(c *karpenter.NodeClaim) bool {
			return c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized)
		})
		time.Sleep(10 * time.Second)
		stop()
		running.Wait()
		time.Sleep(time.Minute)
		first, last := x.requested[0].Sub(began), x.requested[len(x.requested)-1].Sub(began)
		writes := 0
		for _, call := range slices.Sorted(maps.Keys(x.callCounts)) {
			t.Logf("%s: %d", call, x.callCounts[call])
		}
		for _, call := range []string{"create NodeClaim", "update NodeClaim", "updatestatus NodeClaim", "update Node"} {
			writes += x.callCounts[call]
		}
		t.Logf("first request after %s, last after %s; all bound after %s, initialized after %s; %.1f writes a node", first, last, bound, ready, float64(writes)/(intents*each))
		if first > time.Second || bound > 10*time.Second || writes > 9*intents*each {
			t.Error("want the first request within 1 s, all bound within 10 s, and at most 9 writes a node")
		}
	})
}
