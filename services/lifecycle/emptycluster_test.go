package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// emptyCluster is a cluster of empty nodes with lifecycle as deployed, and disruption at its
// interval. Disruption sends every proposal again with each snapshot.
type emptyCluster struct {
	*remoteClient
	t      *testing.T
	server *memcluster.Server
	lanes  func(context.Context, event.Envelope) error

	mu      sync.Mutex
	queue   []event.Envelope
	results map[fault.Kind]int
	slots   chan struct{}
}

// snapshotEvery is the interval of the watcher's snapshots.
const snapshotEvery = 10 * time.Second

// countRemaining counts the nodes that are not being deleted yet.
func (x *emptyCluster) countRemaining() (n int) {
	for _, c := range x.listClaims() {
		if c.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (x *emptyCluster) listClaims() []*karpenter.NodeClaim {
	claims, err := cluster.List[*karpenter.NodeClaim](x.t.Context(), x.server, cluster.NodeClaims)
	if err != nil {
		x.t.Fatal(err)
	}
	return claims
}

// resetCalls resets the counted calls.
func (x *emptyCluster) resetCalls() {
	x.remoteClient.mu.Lock()
	defer x.remoteClient.mu.Unlock()
	x.callCounts = nil
}

// sendProposals sends disruption's messages for a snapshot of now.
func (x *emptyCluster) sendProposals() {
	for _, c := range x.listClaims() {
		if c.DeletionTimestamp != nil {
			continue
		}
		b := event.DisruptionProposed{
			Proposal: "of-" + c.Name, Phase: event.Proposed, Reason: string(karpenter.DisruptionReasonEmpty), Method: "Emptiness", Claims: []string{c.Name},
			Snapshot: event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf([]byte(time.Now().String())), Size: 1}, Decided: time.Now(),
		}
		if p := planning.ReadProposal(c); p != nil {
			if b.Phase = event.Confirmed; time.Since(p.ProposedAt) < planning.ConfirmAfter || !p.ConfirmedAt.IsZero() {
				continue
			}
		}
		x.send(b)
	}
}

func (x *emptyCluster) send(body event.Body) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue = append(x.queue, newEnvelope(x.t, body))
}

// receiveMessages receives ten messages at a time in order, as the host does.
func (x *emptyCluster) receiveMessages(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		x.mu.Lock()
		n := min(10, len(x.queue), cap(x.slots)-len(x.slots))
		batch := x.queue[:n]
		x.queue = x.queue[n:]
		x.mu.Unlock()
		for _, e := range batch {
			x.slots <- struct{}{}
			go func() {
				err := x.lanes(ctx, e)
				<-x.slots
				x.mu.Lock()
				defer x.mu.Unlock()
				x.results[fault.KindOf(err)]++
			}()
		}
	}
}

func newEmptyCluster(t *testing.T, n int) *emptyCluster {
	x := &emptyCluster{
		t: t, server: memcluster.New(memcluster.Options{Now: time.Now}), results: map[fault.Kind]int{}, slots: make(chan struct{}, lifecycle.MaxInFlight),
		remoteClient: &remoteClient{latency: 5 * time.Millisecond, writes: make(chan struct{}, 1), tainted: map[string]time.Time{}, reportedStuck: map[string]time.Time{}},
	}
	newFleet(x.server, n, 0)
	pool := &karpenter.NodePool{}
	pool.Name, pool.Spec.Disruption.Budgets = "default", []karpenter.Budget{{Nodes: "100%"}}
	x.server.SeedObjects(pool)
	x.Client = x.server.ClientFor("lifecycle")
	cache := x.server.NewCache(memcluster.CacheOptions{Trim: lifecycle.Trims()})
	service := lifecycle.New(lifecycle.Config{
		Client: x, Cache: cache, Blobs: memblob.New(memblob.Options{Now: time.Now}),
		Launcher: memqueue.New(memqueue.Options{Now: time.Now}).Queue("launcher", memqueue.QueueOptions{}),
		Cluster:  clusterIdentity, Namespace: namespace, KarpenterNamespace: namespace,
		Holder: "pod-1", Region: "eu-west-1", Parallel: 32, Rest: lifecycle.ReconcileInterval, Now: time.Now,
	})
	gate := host.NewMutex()
	x.lanes = service.ConcurrentHandler(gate)
	ctx, stop := context.WithCancel(t.Context())
	loop := host.Loop{Reconcile: gate.WrapLocked(func(ctx context.Context) error {
		cache.DeliverAll()
		return service.Step(ctx)
	}), Interval: lifecycle.ReconcileInterval, NextDue: service.NextRetry, Changed: x.writes}
	var running sync.WaitGroup
	running.Go(func() { _ = loop.Run(ctx) })
	running.Go(func() { x.receiveMessages(ctx) })
	t.Cleanup(func() { stop(); running.Wait(); time.Sleep(time.Minute) })
	time.Sleep(10 * time.Second)
	return x
}

// Five hundred empty nodes are removed as fast as the client's rate limit allows, even if the
// messages are repeated. Each removal makes few reads, and the cluster is not listed for each. A
// notice does not wait.
func TestEmptyNodesAreRemovedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 500
		x := newEmptyCluster(t, nodes)
		x.sendProposals()
		time.Sleep(snapshotEvery)
		x.sendProposals()
		time.Sleep(snapshotEvery)
		x.resetCalls()
		began := time.Now()
		x.sendProposals()
		time.Sleep(time.Second)
		x.send(event.NodeNoticed{InstanceID: "i-c499", Kind: event.SpotInterruption, Noticed: time.Now(), Deadline: time.Now().Add(2 * time.Minute)})
		noticed := time.Now()
		for x.countRemaining() > 0 && time.Since(began) < time.Hour {
			time.Sleep(snapshotEvery)
			x.sendProposals()
		}
		took := time.Since(began)
		x.remoteClient.mu.Lock()
		defer x.remoteClient.mu.Unlock()
		if tainted := x.tainted["nc499"].Sub(noticed); tainted < 0 || tainted > 3*time.Second {
			t.Errorf("the notice was handled after %s", tainted)
		}
		for call, most := range map[string]int{
			"list NodePool": nodes / 25, "list NodeClaim": nodes / 25, "list PodDisruptionBudget": nodes / 25, "list Node": 0, "list Pod": 0,
			// One read after the node was tainted, one before it is deleted, and one before its instance is terminated.
			"list some Pod": 3*nodes + 10, "get Node": nodes + 10,
			// One read for the confirmation, and one more for a late message.
			"get NodeClaim": 2 * nodes,
		} {
			if got := x.callCounts[call]; got > most {
				t.Errorf("%d calls %s for %d nodes, more than %d", got, call, nodes, most)
			}
		}
		if took > time.Minute {
			t.Errorf("all claims were being deleted only after %s", took)
		}
		t.Logf("all claims are being deleted after %s; results %v; calls %v", took, x.results, x.callCounts)
	})
}
