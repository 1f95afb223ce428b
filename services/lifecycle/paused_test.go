package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// pausedClient is the client of a replica that is paused before its first write of a claim, while
// other clients write.
type pausedClient struct {
	cluster.Client
	before    memcluster.Verb
	meanwhile func()
}

func (p *pausedClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if kind, _ := cluster.KindOf(o); kind == cluster.NodeClaims {
		p.pauseBefore(memcluster.VerbUpdate)
	}
	return p.Client.Update(ctx, o)
}

func (p *pausedClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if kind, _ := cluster.KindOf(o); kind == cluster.NodeClaims {
		p.pauseBefore(memcluster.VerbUpdateStatus)
	}
	return p.Client.UpdateStatus(ctx, o)
}

func (p *pausedClient) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	if kind == cluster.NodeClaims {
		p.pauseBefore(memcluster.VerbDelete)
	}
	return p.Client.Delete(ctx, kind, key, uid)
}

func (p *pausedClient) DeleteAsRead(ctx context.Context, kind cluster.Kind, o cluster.Object) error {
	if kind == cluster.NodeClaims {
		p.pauseBefore(memcluster.VerbDelete)
	}
	return p.Client.DeleteAsRead(ctx, kind, o)
}

func (p *pausedClient) pauseBefore(before memcluster.Verb) {
	if before == p.before && p.meanwhile != nil {
		p.meanwhile()
		p.meanwhile = nil
	}
}

// claimRewritten writes the proposal on old-0 as another replica; nil removes it.
func (s *testCluster) claimRewritten(p *planning.Proposal, stood *bool) func() {
	return func() {
		*stood = true
		c := s.getClaim("old-0").DeepCopy()
		delete(c.Annotations, planning.ProposalAnnotation)
		if p != nil {
			text, err := json.Marshal(p)
			if err != nil {
				s.t.Fatal(err)
			}
			c.Annotations[planning.ProposalAnnotation] = string(text)
		}
		if _, err := s.ClientFor("other").Update(context.Background(), c); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A replica that was paused before the end of a disruption, and no longer leads, does not delete a
// node that another leader rolled back: neither in a removal nor in a replacement.
func TestReplicaPausedBeforeDeletion(t *testing.T) {
	t.Run("removed", func(t *testing.T) {
		s, stood := newInitializedCluster(t, 3), false
		m := s.startProposal(0, "old-0")
		s.startService(&pausedClient{s.ClientFor("lifecycle"), memcluster.VerbDelete, s.claimRewritten(nil, &stood)})
		m.deliver(event.Confirmed, "")
		s.endLease(stood)
	})
	t.Run("replaced", func(t *testing.T) {
		s, stood := newInitializedCluster(t, 3), false
		m := s.startProposal(1, "old-0")
		m.deliver(event.Confirmed, "")
		s.handleMessage(s.newMessage(launchSettled("new", 1, "i-new")), "")
		s.joinNode("new-0", "i-new")
		s.startService(&pausedClient{s.ClientFor("lifecycle"), memcluster.VerbDelete, s.claimRewritten(nil, &stood)})
		for range 10 {
			s.advance(3 * time.Second)
		}
		s.endLease(stood)
	})
}

// It does not continue from a claim that was rolled back, or that carries another proposal, since
// it was marked: nothing is deleted or launched.
func TestReplicaPausedAfterMark(t *testing.T) {
	for _, c := range []struct {
		name         string
		replacements int
		other        *planning.Proposal
	}{
		{"removed", 0, nil},
		{"replaced", 1, nil},
		{"removed by another proposal", 0, &planning.Proposal{ID: "q", Replacements: []string{"other-0"}}},
		{"replaced by another proposal", 1, &planning.Proposal{ID: "q", Replacements: []string{"new-0"}}},
		{"replaced by other claims", 1, &planning.Proposal{ID: "p", Replacements: []string{"other-0"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, stood := newInitializedCluster(t, 3), false
			m := s.startProposal(c.replacements, "old-0")
			if c.other != nil {
				c.other.Reason, c.other.Method, c.other.ProposedAt, c.other.ConfirmedAt = m.Reason, m.Method, s.now.Add(-time.Minute), s.now
			}
			seq := s.readOutbox().Seq
			s.startService(&pausedClient{s.ClientFor("lifecycle"), memcluster.VerbUpdateStatus, s.claimRewritten(c.other, &stood)})
			m.deliver(event.Confirmed, fault.Retry)
			if s.readOutbox().Seq != seq || s.getClaim("new-0") != nil {
				t.Error("the paused replica created a replacement")
			}
			if c.other == nil {
				s.endLease(stood)
				return
			}
			s.expectStates(stateActing, "old-0")
			if p := planning.ReadProposal(s.getClaim("old-0")); !stood || p.ID != c.other.ID {
				t.Errorf("paused %v, the claim has the proposal %+v", stood, p)
			}
		})
	}
}

// endLease checks that the disruption of old-0 has ended and stays ended.
func (s *testCluster) endLease(stood bool) {
	s.t.Helper()
	s.restartService()
	s.advanceOnce(time.Second)
	s.advanceOnce(time.Second)
	if !stood {
		s.t.Error("the replica was not paused")
	}
	s.expectStates(stateUntouched, "old-0")
}

// lateClient delays the first write that confirms a proposal: the replica is paused before it, or the
// request is lost for the replica and arrives when arrive is called.
type lateClient struct {
	cluster.Client
	meanwhile func()
	arrive    func()
}

func (l *lateClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	c, ok := o.(*karpenter.NodeClaim)
	if !ok || l.arrive != nil || disruption.ActingProposal(c) == nil {
		return l.Client.Update(ctx, o)
	}
	l.arrive = func() { _, _ = l.Client.Update(context.WithoutCancel(ctx), c) }
	if l.meanwhile == nil {
		return nil, fault.F("updating NodeClaim "+c.Name, fault.Unknown, "no answer")
	}
	l.meanwhile()
	return l.Client.Update(ctx, o)
}

// A confirmation that is written late exceeds no budget, although another proposal was confirmed
// meanwhile: by the replica that took over the Lease, or by the same replica after its request had
// no answer.
func TestLateConfirmation(t *testing.T) {
	for _, c := range []struct {
		name         string
		replacements int
		isPaused     bool
	}{
		{"a removal by a paused replica", 0, true},
		{"a replacement by a paused replica", 1, true},
		{"a removal whose request is delayed", 0, false},
		{"a replacement whose request is delayed", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newInitializedCluster(t, 3)
			s.setBudgetAndLimit("1", 9)
			first, second := s.startProposal(c.replacements, "old-0"), s.newProposal("q", "old-1")
			second.Plan = s.storeReplacementPlan("other", c.replacements)
			second.deliver(event.Proposed, "")
			s.advanceOnce(planning.ConfirmAfter)
			client := &lateClient{Client: s.ClientFor("lifecycle")}
			s.startService(client)
			if c.isPaused {
				client.meanwhile = func() {
					paused := s.svc
					s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) { c.Holder = "pod-2" })
					s.handleMessage(second.envelope(event.Confirmed), fault.Retry)
					s.now = s.now.Add(lease.Duration)
					second.deliver(event.Confirmed, "")
					s.svc = paused
				}
				s.handleMessage(first.envelope(event.Confirmed), "")
			} else {
				s.handleMessage(first.envelope(event.Confirmed), fault.Unknown)
				second.deliver(event.Confirmed, "")
				client.arrive()
			}
			if client.arrive == nil {
				t.Fatal("no proposal was confirmed")
			}
			s.advance(time.Second)
			s.checkInvariants(1, 9)
			if s.disruptionState("old-0") == stateUntouched || s.disruptionState("old-1") != stateUntouched {
				t.Errorf("old-0 is %q and old-1 is %q, want only old-0 disrupted", s.disruptionState("old-0"), s.disruptionState("old-1"))
			}
		})
	}
}

// The same if both proposals are confirmed in one turn, whose own reservations use no budget before they are started.
func TestLateConfirmationWithinTurn(t *testing.T) {
	for name, replacements := range map[string]int{"a removal": 0, "a replacement": 1} {
		t.Run(name, func(t *testing.T) {
			s := newInitializedCluster(t, 3)
			s.setBudgetAndLimit("1", 9)
			first, second, other := s.startProposal(replacements, "old-0"), s.newProposal("q", "old-1"), s.newProposal("other", "old-2")
			second.Plan = s.storeReplacementPlan("second", 1)
			second.deliver(event.Proposed, "")
			s.advanceOnce(planning.ConfirmAfter)
			client := &lateClient{Client: s.ClientFor("lifecycle")}
			s.startService(client)
			// The turn of the first message begins before the other two arrive, which share the next.
			kinds, _ := s.deliverTogether(other.envelope(event.Dropped), first.envelope(event.Confirmed), second.envelope(event.Confirmed))
			if client.arrive == nil || kinds[1] != fault.Unknown {
				t.Fatalf("no confirmation was delayed: %q", kinds)
			}
			client.arrive()
			s.advance(time.Second)
			s.checkInvariants(1, 9)
			if s.disruptionState("old-0") == stateUntouched || s.disruptionState("old-1") != stateUntouched {
				t.Errorf("old-0 is %q and old-1 is %q, want only old-0 disrupted", s.disruptionState("old-0"), s.disruptionState("old-1"))
			}
		})
	}
}

// The reservation that a crashed replica leaves uses the budget until its
// proposal is dropped or confirmed.
func TestReservationEnds(t *testing.T) {
	for phase, want := range map[event.Phase]string{event.Dropped: "going", event.Confirmed: stateUntouched} {
		t.Run(string(phase), func(t *testing.T) {
			s := newInitializedCluster(t, 3)
			s.setBudgetAndLimit("1", 9)
			first, second := s.startProposal(0, "old-0"), s.newProposal("q", "old-1")
			s.startService(&lateClient{Client: s.ClientFor("lifecycle")})
			s.handleMessage(first.envelope(event.Confirmed), fault.Unknown)
			s.restartService()
			first.deliver(phase, "")
			second.deliver(event.Proposed, "")
			s.advanceOnce(planning.ConfirmAfter)
			second.deliver(event.Confirmed, "")
			s.expectStates(want, "old-1")
			s.checkInvariants(1, 9)
		})
	}
}

// Replacements that wait for a batch in flight reserve nothing, also if the batch is sent during their
// turn.
func TestWaitingReplacementReservesNothing(t *testing.T) {
	for _, isDuring := range []bool{false, true} {
		t.Run(fmt.Sprintf("the batch is sent during the turn: %t", isDuring), func(t *testing.T) {
			s := newInitializedCluster(t, 3)
			m := s.startProposal(1, "old-0")
			if isDuring {
				s.startService(&reservedClient{s.ClientFor("lifecycle"), func() { s.startBatch() }})
			} else {
				s.startBatch()
			}
			m.deliver(event.Confirmed, fault.Retry)
			s.expectStates("proposed ", "old-0")
			if by := s.getClaim("old-0").Annotations[planning.ReservationAnnotation]; by != "" {
				t.Errorf("old-0 is reserved by %s", by)
			}
		})
	}
}

// A batch that is sent while a replacement is started comes first. The proposal then waits on untainted nodes, and the redelivered
// message confirms it again.
func TestBatchDuringReplacement(t *testing.T) {
	s := newInitializedCluster(t, 3)
	m := s.startProposal(2, "old-0", "old-1")
	var held outbox.Stored
	s.startService(&pausedClient{s.ClientFor("lifecycle"), memcluster.VerbUpdateStatus, func() { held = s.startBatch() }})
	e := m.envelope(event.Confirmed)
	s.handleMessage(e, fault.Conflict)
	s.expectStates("proposed ", "old-0", "old-1")
	s.advance(time.Second)
	s.handleMessage(e, fault.Retry)
	s.expectStates("proposed ", "old-0", "old-1")
	s.handleMessage(s.planMessage(held, s.planIntent(held, "another", 1)), "")
	s.handleMessage(e, "")
	s.expectStates(stateActing, "old-0", "old-1")
	if s.getClaim("new-0") == nil || s.getClaim("new-1") == nil {
		t.Error("the replacements do not exist")
	}
	if got := s.eventsWithReason("DisruptionBlocked"); len(got) > 0 {
		t.Errorf("got Events %q", got)
	}
	s.checkInvariants(2, 9)
}

// repeatedSwap is a client that repeats a write of the outbox whose answer was lost, and gets a conflict with its own write.
type repeatedSwap struct{ cluster.Client }

func (r repeatedSwap) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	if kind, _ := cluster.KindOf(o); kind == cluster.ConfigMaps {
		_, _ = r.Client.Update(ctx, o)
	}
	return r.Client.Update(ctx, o)
}

// A conflict with the own admission of the replacements does not revoke the confirmation: the redelivered message resumes it.
func TestRepeatedSwap(t *testing.T) {
	s := newInitializedCluster(t, 3)
	m := s.startProposal(1, "old-0")
	s.startService(repeatedSwap{s.ClientFor("lifecycle")})
	e := m.envelope(event.Confirmed)
	s.handleMessage(e, fault.Conflict)
	s.expectStates(stateActing, "old-0")
	s.startService(s.ClientFor("lifecycle"))
	s.handleMessage(e, "")
	s.expectStates(stateActing, "old-0")
	if s.getClaim("new-0") == nil {
		t.Error("the replacement does not exist")
	}
}

// reservedClient runs a function after a claim is reserved.
type reservedClient struct {
	cluster.Client
	after func()
}

func (r *reservedClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	stored, err := r.Client.Update(ctx, o)
	if o.GetAnnotations()[planning.ReservationAnnotation] != "" && r.after != nil {
		r.after()
		r.after = nil
	}
	return stored, err
}

// reusedName is the client of a replica that is paused before it reads the pods of a node. Meanwhile another node gets the name.
type reusedName struct {
	cluster.Client
	meanwhile func()
}

func (r *reusedName) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	if kind == cluster.Pods && r.meanwhile != nil {
		r.meanwhile()
		r.meanwhile = nil
	}
	return r.Client.ListBy(ctx, kind, index, value)
}

// reusedNameCache is the cache of a replica that is paused between its snapshot of the nodes and the list of a node's pods.
type reusedNameCache struct {
	*memcluster.Cache
	meanwhile func()
}

func (r *reusedNameCache) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	if kind == cluster.Pods && r.meanwhile != nil {
		meanwhile := r.meanwhile
		r.meanwhile = nil
		meanwhile()
	}
	return r.Cache.ListBy(kind, index, value)
}

// A drain evicts and deletes no pods of a new node with the name of the old one: neither after a pause, nor if the watch of nodes
// is late. The deadline of the drain has passed, or the drain has no deadline.
func TestDrainOfReusedName(t *testing.T) {
	for _, isForced := range []bool{true, false} {
		for name, prepare := range map[string]func(s *testCluster, reuse func()){
			"paused before it reads the API server": func(s *testCluster, reuse func()) {
				s.startService(&reusedName{s.ClientFor("lifecycle"), reuse})
			},
			"paused before it lists the cache": func(s *testCluster, reuse func()) {
				s.configureService(func(c *lifecycle.Config) {
					c.Cache = &reusedNameCache{s.cache, func() { reuse(); s.cache.DeliverAll() }}
				})
			},
			"with a late watch of nodes": func(s *testCluster, reuse func()) {
				for _, kind := range []cluster.Kind{cluster.Nodes, cluster.NodeClaims} {
					s.cache.SetDelay(kind, time.Hour)
				}
				reuse()
			},
		} {
			if !isForced && name == "with a late watch of nodes" {
				continue // The cache has no node of another UID. An eviction respects budgets and the pod's grace period.
			}
			t.Run(fmt.Sprintf("%s, forced %t", name, isForced), func(t *testing.T) {
				s := newInitializedCluster(t, 1)
				reused := false
				reuse := func() {
					reused = true
					s.updateNodeOf("old-0", func(n *corev1.Node) { n.UID, n.Spec.ProviderID = "another", "aws:///eu-west-1a/i-another" })
					s.addPod("old-0", "new")
				}
				if isForced {
					s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
						o.GetAnnotations()[karpenter.NodeClaimTerminationTimestampAnnotationKey] = s.now.Format(time.RFC3339)
					})
				}
				if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
					t.Fatal(err)
				}
				for hasBegun := false; !hasBegun; _, hasBegun = s.getClaim("old-0").Status.Conditions.Get(karpenter.ConditionTypeDrained) {
					s.advance(time.Second)
				}
				s.cache.DeliverAll()
				prepare(s, reuse)
				for range 10 {
					s.now = s.now.Add(time.Second)
					if s.cache.Advance(s.now); !reused {
						s.cache.DeliverAll()
					}
					if err := s.svc.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if !reused {
					t.Fatal("the name was not reused")
				}
				if pod, err := s.Get(t.Context(), cluster.Pods, cluster.Key{Namespace: "default", Name: "new"}); err != nil || pod.GetDeletionTimestamp() != nil {
					t.Errorf("the pod of the new node is removed (%v)", err)
				}
			})
		}
	}
}
