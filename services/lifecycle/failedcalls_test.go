package lifecycle_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// oneFailure is the call that fails.
type oneFailure struct {
	mu sync.Mutex
	// left is how many calls succeed before that one, and failed is its error.
	left   int
	failed error
}

// count counts a call, and returns an error if it is the one that fails.
func (f *oneFailure) count(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left == -1 {
		f.failed = fault.F(call, fault.Unknown, "the only call that fails")
		return f.failed
	}
	return nil
}

// oneFailureStore is a store that does not execute the call that fails.
type oneFailureStore struct {
	blob.Store
	calls *oneFailure
}

func (s oneFailureStore) Put(ctx context.Context, key string, data []byte) error {
	if err := s.calls.count("put document " + key); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, data)
}

func (s oneFailureStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.calls.count("get document " + key); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

// oneFailureClient is a client that does not execute the call that fails. Leases and Events do not count.
type oneFailureClient struct {
	cluster.Client
	calls *oneFailure
}

func (c *oneFailureClient) fail(verb string, kind cluster.Kind, name string) error {
	if kind == cluster.Leases {
		return nil
	}
	return c.calls.count(fmt.Sprintf("%s %s %s", verb, kind.Kind, name))
}

func (c *oneFailureClient) failObject(verb string, o cluster.Object) error {
	kind, _ := cluster.KindOf(o)
	return c.fail(verb, kind, o.GetName())
}

func (c *oneFailureClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if err := c.fail("get", kind, key.Name); err != nil {
		return nil, err
	}
	return c.Client.Get(ctx, kind, key)
}

func (c *oneFailureClient) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	if err := c.fail("list", kind, ""); err != nil {
		return nil, err
	}
	return c.Client.List(ctx, kind, namespace)
}

func (c *oneFailureClient) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	if err := c.fail("list by "+string(index), kind, value); err != nil {
		return nil, err
	}
	return c.Client.ListBy(ctx, kind, index, value)
}

func (c *oneFailureClient) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if err := c.failObject("create", o); err != nil {
		return nil, err
	}
	return c.Client.Create(ctx, o)
}

func (c *oneFailureClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if err := c.failObject("update", o); err != nil {
		return nil, err
	}
	return c.Client.Update(ctx, o)
}

func (c *oneFailureClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if err := c.failObject("update status of", o); err != nil {
		return nil, err
	}
	return c.Client.UpdateStatus(ctx, o)
}

func (c *oneFailureClient) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	if err := c.fail("delete", kind, key.Name); err != nil {
		return err
	}
	return c.Client.Delete(ctx, kind, key, uid)
}

func (c *oneFailureClient) DeleteAsRead(ctx context.Context, kind cluster.Kind, o cluster.Object) error {
	if err := c.fail("delete as read", kind, o.GetName()); err != nil {
		return err
	}
	return c.Client.DeleteAsRead(ctx, kind, o)
}

// unreliableCluster is a cluster of which one call to the API server or to the store of documents fails.
type unreliableCluster struct {
	*testCluster
	calls    oneFailure
	returned []error
}

// deliver delivers a message until it is handled, as a queue does.
func (u *unreliableCluster) deliver(e event.Envelope) {
	for range 4 {
		u.cache.Advance(u.now)
		err := u.svc.Handle(u.t.Context(), e)
		if err == nil || fault.Is(err, fault.Stale, fault.Foreign) {
			return
		}
		u.returned = append(u.returned, err)
		u.step()
		u.now = u.now.Add(2 * time.Second)
	}
	u.t.Errorf("%s is not handled after four deliveries: %v", e.Type, u.returned)
}

// step reconciles once.
func (u *unreliableCluster) step() {
	u.cache.Advance(u.now)
	if err := u.svc.Step(u.t.Context()); err != nil {
		u.returned = append(u.returned, err)
	}
}

// wait advances the time in steps of a second.
func (u *unreliableCluster) wait(d time.Duration) {
	for end := u.now.Add(d); u.now.Before(end); {
		u.now = u.now.Add(time.Second)
		u.step()
	}
}

// describe returns what the scenario has led to.
func (u *unreliableCluster) describe() []string {
	var out []string
	instances := u.boundInstances()
	for _, c := range u.listClaims() {
		out = append(out, fmt.Sprintf("claim %s: instance %q, type %q, team %q, initialized %t, deleted %t, deadline %t, proposal %t", c.Name, instances[c.Name],
			c.Labels[corev1.LabelInstanceTypeStable], c.Labels["team"], c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized), c.DeletionTimestamp != nil,
			c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] != "", c.Annotations[planning.ProposalAnnotation] != ""))
	}
	nodes, err := cluster.List[*corev1.Node](u.t.Context(), u.Server, cluster.Nodes)
	if err != nil {
		u.t.Fatal(err)
	}
	for _, node := range nodes {
		out = append(out, fmt.Sprintf("node %s: %v", node.Name, node.Spec.Taints))
	}
	for _, o := range u.unavailableOfferings() {
		out = append(out, fmt.Sprint("unavailable: ", o.Offering))
	}
	return out
}

// checkProposal checks that each of the two nodes of a proposal is as before, or is removed after its replacement was ready.
func (u *unreliableCluster) checkProposal() {
	ready := u.getClaim("new-0") == nil || u.getClaim("new-0").Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized)
	for _, name := range []string{"old-0", "old-1"} {
		if state := u.disruptionState(name); state != stateUntouched && (state != "going" || !ready) {
			u.t.Errorf("after the call %q failed, %s is in state %q", u.calls.failed, name, state)
		}
	}
}

// An API server or a store that does not answer one call delays lifecycle, and changes nothing else. The call's error is returned. After the
// messages are delivered again, and lifecycle has reconciled again, the cluster is as if all calls had been answered. But a disruption may
// leave some of its nodes as they were.
func TestAnyCallMayFail(t *testing.T) {
	prepared := func(prepare func(t *testing.T) *testCluster, config func(*lifecycle.Config)) func(t *testing.T) (*testCluster, func(*lifecycle.Config)) {
		return func(t *testing.T) (*testCluster, func(*lifecycle.Config)) { return prepare(t), config }
	}
	initialized := func(n int) func(t *testing.T) *testCluster {
		return func(t *testing.T) *testCluster { return newInitializedCluster(t, n) }
	}
	for name, c := range map[string]struct {
		prepare  func(t *testing.T) (*testCluster, func(*lifecycle.Config))
		run      func(u *unreliableCluster)
		proposal bool
	}{
		"a launch": {prepare: prepared(newTestCluster, nil), run: func(u *unreliableCluster) {
			held := u.startBatch()
			u.deliver(u.planMessage(held, u.planIntent(held, "one", 2)))
			u.deliver(u.newMessage(launchSettled("one", 2, "i-1", "i-2")))
			u.joinNode("node-1", "i-1")
			u.joinNode("node-2", "i-2")
			u.deliver(u.inventoryMessage(u.now, listedInstance("i-1", "one", "one-0"), listedInstance("i-2", "one", "one-1")))
			u.wait(10 * time.Second)
		}},
		"a refused launch": {prepare: prepared(newTestCluster, nil), run: func(u *unreliableCluster) {
			held := u.startBatch()
			u.deliver(u.planMessage(held, u.planIntent(held, "one", 2)))
			u.deliver(u.newMessage(launchSettled("one", 2, "i-1")))
			u.deliver(u.inventoryMessage(u.now, listedInstance("i-1", "one", "one-0")))
			u.wait(10 * time.Second)
		}},
		"a removal": {proposal: true, prepare: prepared(initialized(2), nil), run: func(u *unreliableCluster) {
			u.setRate("2")
			u.wait(time.Second)
			m := u.newProposal("p", "old-0", "old-1")
			u.deliver(m.envelope(event.Proposed))
			u.now = u.now.Add(20 * time.Second)
			u.deliver(m.envelope(event.Confirmed))
			u.wait(5 * time.Second)
		}},
		"a replacement": {proposal: true, prepare: prepared(initialized(2), nil), run: func(u *unreliableCluster) {
			m := u.newProposal("p", "old-0", "old-1")
			m.Plan = u.storeReplacementPlan("new", 1)
			u.deliver(m.envelope(event.Proposed))
			u.now = u.now.Add(20 * time.Second)
			u.deliver(m.envelope(event.Confirmed))
			u.deliver(u.newMessage(launchSettled("new", 1, "i-new")))
			u.joinNode("new-0", "i-new")
			u.deliver(u.inventoryMessage(u.now, listedInstance("i-0", "old", "old-0"), listedInstance("i-1", "old", "old-1"), listedInstance("i-new", "new", "new-0")))
			u.wait(10 * time.Second)
		}},
		"a removal that a crash interrupted": {proposal: true, prepare: prepared(func(t *testing.T) *testCluster {
			s := newInitializedCluster(t, 2)
			m := s.newProposal("p", "old-0", "old-1")
			s.handleMessage(m.envelope(event.Proposed), "")
			s.now = s.now.Add(20 * time.Second)
			s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.Nodes, As: fault.Unknown, Times: 2})
			s.handleMessage(m.envelope(event.Confirmed), fault.Unknown)
			s.cache.DeliverAll()
			return s
		}, nil), run: func(u *unreliableCluster) { u.wait(5 * time.Second) }},
		"a repair": {prepare: prepared(func(t *testing.T) *testCluster { return startRepair(t, 1, 0).testCluster }, withRepair(t)), run: func(u *unreliableCluster) {
			u.setBudgetAndLimit("1", 1)
			m := u.newProposal("p", "old-0")
			m.Reason, m.Method, m.Moved = string(karpenter.DisruptionReasonUnhealthy), "Repair", 1
			u.deliver(m.envelope(event.Confirmed))
			u.wait(5 * time.Second)
		}},
		"a rebalance recommendation": {prepare: prepared(func(t *testing.T) *testCluster {
			s := newInitializedCluster(t, 1)
			s.addPod("old-0", "web")
			return s
		}, func(c *lifecycle.Config) { c.Rebalance = lifecycle.RebalanceReplace }), run: func(u *unreliableCluster) {
			u.deliver(u.noticeMessage(event.RebalanceRecommendation, "i-0", ""))
			u.wait(5 * time.Second)
			held := u.startBatch()
			u.deliver(u.planMadeMessage(held, planning.Plan{
				Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: []planning.PlannedIntent{u.planIntent(held, "new", 1)},
				Nominations: []planning.Nomination{{Namespace: "default", Claim: "new-0", Pod: planning.PodRef{Name: "web", Node: "old-0"}}},
			}))
			u.wait(5 * time.Second)
		}},
		"a NodeClaim that a user created": {prepare: func(t *testing.T) (*testCluster, func(*lifecycle.Config)) {
			s, config := withCatalogue(t, planningtest.NewBatch())
			s.createClaim(personalClaim("mine"))
			s.cache.DeliverAll()
			return s, config
		}, run: func(u *unreliableCluster) {
			u.deliver(u.planUnplanned(planningtest.NewBatch().Snapshot))
			u.wait(5 * time.Second)
		}},
		"a notice": {prepare: prepared(initialized(1), nil), run: func(u *unreliableCluster) {
			u.deliver(u.noticeMessage(event.SpotInterruption, "i-0", "terminate"))
			u.wait(5 * time.Second)
		}},
		"a notice that the cache does not know": {prepare: prepared(func(t *testing.T) *testCluster {
			s := newTestCluster(t)
			s.launchIntent("one", 1)
			s.cache.DeliverAll()
			s.cache.SetDelay(cluster.NodeClaims, time.Minute)
			s.handleMessage(s.newMessage(launchSettled("one", 1, "i-0")), "")
			return s
		}, nil), run: func(u *unreliableCluster) {
			u.deliver(u.noticeMessage(event.SpotInterruption, "i-0", "terminate"))
			u.cache.SetDelay(cluster.NodeClaims, 0)
			u.wait(5 * time.Second)
		}},
		"a surplus": {prepare: prepared(initialized(2), withStaticCapacity), run: func(u *unreliableCluster) {
			u.setReplicas(1)
			u.wait(5 * time.Second)
		}},
		"an inventory": {prepare: prepared(func(t *testing.T) *testCluster {
			s := newTestCluster(t)
			s.launchIntent("one", 1)
			s.now = s.now.Add(time.Minute)
			return s
		}, nil), run: func(u *unreliableCluster) {
			u.deliver(u.inventoryMessage(u.now, listedInstance("i-1", "one", "one-0")))
			u.joinNode("node-1", "i-1")
			u.wait(10 * time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(n int) *unreliableCluster {
				s, config := c.prepare(t)
				u := &unreliableCluster{testCluster: s, calls: oneFailure{left: n}}
				u.startService(&oneFailureClient{s.ClientFor("lifecycle"), &u.calls}, func(c *lifecycle.Config) {
					c.Blobs = oneFailureStore{s.blobs, &u.calls}
					if config != nil {
						config(c)
					}
				})
				c.run(u)
				return u
			}
			without := run(math.MaxInt)
			want := without.describe()
			if c.proposal {
				without.expectStates("going", "old-0", "old-1")
			}
			for n := 0; ; n++ {
				u := run(n)
				if u.calls.failed == nil {
					if n == 0 {
						t.Error("the scenario makes no calls")
					}
					return
				}
				if !slices.ContainsFunc(u.returned, func(err error) bool { return strings.Contains(err.Error(), u.calls.failed.Error()) }) {
					t.Errorf("the error of the call %q is not returned: %v", u.calls.failed, u.returned)
				}
				if got := u.describe(); c.proposal {
					u.checkProposal()
				} else if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("after the call %q failed:\n%s", u.calls.failed, diff)
				}
			}
		})
	}
}
