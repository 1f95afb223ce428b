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

// exodus is a cluster of which every node is empty, with lifecycle as it is deployed
// and disruption at its pace: each of its passes says of each proposal what it is to
// become, whether or not the pass before has been heard.
type exodus struct {
	*distant
	t      *testing.T
	server *memcluster.Server
	lanes  func(context.Context, event.Envelope) error

	mu    sync.Mutex
	queue []event.Envelope
	heard map[fault.Kind]int
	slots chan struct{}
}

// snapshotEvery is the watcher's pace, and so disruption's.
const snapshotEvery = 10 * time.Second

// waiting counts the nodes that are not going yet.
func (x *exodus) waiting() (n int) {
	for _, c := range x.claims() {
		if c.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (x *exodus) claims() []*karpenter.NodeClaim {
	claims, err := cluster.List[*karpenter.NodeClaim](x.t.Context(), x.server, cluster.NodeClaims)
	if err != nil {
		x.t.Fatal(err)
	}
	return claims
}

// forget begins to count anew.
func (x *exodus) forget() {
	x.distant.mu.Lock()
	defer x.distant.mu.Unlock()
	x.tally = nil
}

// pass says what disruption would say of a snapshot of now.
func (x *exodus) pass() {
	for _, c := range x.claims() {
		if c.DeletionTimestamp != nil {
			continue
		}
		b := event.DisruptionProposed{
			Proposal: "of-" + c.Name, Phase: event.Proposed, Reason: string(karpenter.DisruptionReasonEmpty), Method: "Emptiness", Claims: []string{c.Name},
			Snapshot: event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf([]byte(time.Now().String())), Size: 1}, Decided: time.Now(),
		}
		if p := planning.ProposalOf(c); p != nil {
			if b.Phase = event.Confirmed; time.Since(p.Proposed) < planning.ConfirmAfter || !p.Confirmed.IsZero() {
				continue
			}
		}
		x.say(b)
	}
}

func (x *exodus) say(body event.Body) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue = append(x.queue, fact(x.t, body))
}

// receive takes ten messages off the queue as the host does, in their order.
func (x *exodus) receive(ctx context.Context) {
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
				x.heard[fault.KindOf(err)]++
			}()
		}
	}
}

func newExodus(t *testing.T, n int) *exodus {
	x := &exodus{
		t: t, server: memcluster.New(memcluster.Options{Now: time.Now}), heard: map[fault.Kind]int{}, slots: make(chan struct{}, lifecycle.Inbox),
		distant: &distant{takes: 5 * time.Millisecond, wrote: make(chan struct{}, 1), tainted: map[string]time.Time{}, named: map[string]time.Time{}},
	}
	fleet(x.server, n, 0)
	pool := &karpenter.NodePool{}
	pool.Name, pool.Spec.Disruption.Budgets = "default", []karpenter.Budget{{Nodes: "100%"}}
	x.server.Seed(pool)
	x.Client = x.server.As("lifecycle")
	cache := x.server.NewCache(memcluster.CacheOptions{})
	service := lifecycle.New(lifecycle.Config{
		Client: x, Cache: cache, Blobs: memblob.New(memblob.Options{Now: time.Now}),
		Launcher: memqueue.New(memqueue.Options{Now: time.Now}).Queue("launcher", memqueue.QueueOptions{}),
		Cluster:  home, Namespace: namespace, KarpenterNamespace: namespace,
		Holder: "pod-1", Region: "eu-west-1", Parallel: 32, Rest: lifecycle.Pace, Now: time.Now,
	})
	gate := host.NewGate()
	x.lanes = service.Lanes(gate)
	ctx, stop := context.WithCancel(t.Context())
	loop := host.Loop{Step: gate.Behind(func(ctx context.Context) error {
		cache.Flush()
		return service.Step(ctx)
	}), Pace: lifecycle.Pace, Next: service.Due, Changed: x.wrote}
	var running sync.WaitGroup
	running.Go(func() { _ = loop.Run(ctx) })
	running.Go(func() { x.receive(ctx) })
	t.Cleanup(func() { stop(); running.Wait(); time.Sleep(time.Minute) })
	time.Sleep(10 * time.Second)
	return x
}

// Five hundred empty nodes go as fast as the client's rate lets them, whatever is said
// of them how often: what is read is little for each, and no list of the cluster is
// made for one. A notice waits behind none of it.
func TestEmptiesGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 500
		x := newExodus(t, nodes)
		x.pass()
		time.Sleep(snapshotEvery)
		x.pass()
		time.Sleep(snapshotEvery)
		x.forget()
		began := time.Now()
		x.pass()
		time.Sleep(time.Second)
		x.say(event.NodeNoticed{InstanceID: "i-c499", Kind: event.SpotInterruption, Noticed: time.Now(), Deadline: time.Now().Add(2 * time.Minute)})
		noticed := time.Now()
		for x.waiting() > 0 && time.Since(began) < time.Hour {
			time.Sleep(snapshotEvery)
			x.pass()
		}
		took := time.Since(began)
		x.distant.mu.Lock()
		defer x.distant.mu.Unlock()
		if tainted := x.tainted["nc499"].Sub(noticed); tainted < 0 || tainted > 3*time.Second {
			t.Errorf("the notice among them became a taint after %s", tainted)
		}
		for call, most := range map[string]int{
			"list NodePool": nodes / 25, "list NodeClaim": nodes / 25, "list PodDisruptionBudget": nodes / 25, "list Node": 0, "list Pod": 0,
			// One before its node goes, and one before its instance ends.
			"list some Pod": 2*nodes + 10, "get Node": nodes + 10,
			// One to confirm it, and one more where a fact came too late.
			"get NodeClaim": 2 * nodes,
		} {
			if got := x.tally[call]; got > most {
				t.Errorf("%d times %s of %d nodes, more than %d", got, call, nodes, most)
			}
		}
		if took > time.Minute {
			t.Errorf("it took %s until each of them was going", took)
		}
		t.Logf("each is going after %s; heard %v; calls %v", took, x.heard, x.tally)
	})
}
