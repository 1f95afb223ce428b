package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// unlistableClient fails to list and to read the objects of one kind.
type unlistableClient struct {
	cluster.Client
	kind cluster.Kind
}

func (u unlistableClient) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	if kind == u.kind {
		return nil, fault.F("listing "+kind.Kind, fault.Unknown, "no answer")
	}
	return u.Client.List(ctx, kind, namespace)
}

func (u unlistableClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if kind == u.kind {
		return nil, fault.F("reading "+key.Name, fault.Unknown, "no answer")
	}
	return u.Client.Get(ctx, kind, key)
}

// A plan is handled later if its outbox cannot be read.
func TestPlanWaitsForUnreadableOutbox(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	plan := s.planMessage(held, s.planIntent(held, "one", 1))
	s.startService(unlistableClient{s.ClientFor("lifecycle"), cluster.ConfigMaps})
	s.handleMessage(plan, fault.Unknown)
	s.restartService()
	s.handleMessage(plan, "")
	if s.getClaim("one-0") == nil {
		t.Error("the plan was not admitted")
	}
}

// No instance is terminated as an orphan while NodeClaims cannot be listed.
func TestOrphansWaitForUnreadableClaims(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.startService(unlistableClient{s.ClientFor("lifecycle"), cluster.NodeClaims})
	e := s.newMessage(launchSettled("one", 2, "i-1", "i-2"))
	s.handleMessage(e, fault.Unknown)
	if sent := typesAndSubjects(s.takeSent()); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
}

// A proposal whose replacements cannot be read is not confirmed, and its nodes stay.
func TestProposalWaitsForUnreadablePlan(t *testing.T) {
	s := newInitializedCluster(t, 2)
	m := s.startProposal(1, "old-0")
	stored := m.Plan
	m.Plan.Digest = event.DigestOf([]byte("another plan"))
	if err := s.svc.Handle(t.Context(), m.envelope(event.Confirmed)); err == nil {
		t.Error("Handle returned no error")
	}
	s.advance(time.Second)
	s.expectStates("proposed ", "old-0")
	m.Plan = stored
	m.deliver(event.Confirmed, "")
	s.expectStates(stateActing, "old-0")
}

// A proposal is not confirmed while a node or its pods cannot be read, because a pod may forbid it.
func TestProposalWaitsForUnreadableNode(t *testing.T) {
	for name, unreadable := range map[string]memcluster.Fault{
		"node": {Verb: memcluster.VerbGet, Kind: cluster.Nodes}, "pods": {Verb: memcluster.VerbList, Kind: cluster.Pods},
	} {
		for replacements, confirmed := range []string{"going", stateActing} {
			t.Run(fmt.Sprintf("%s, %d replacements", name, replacements), func(t *testing.T) {
				s := newInitializedCluster(t, 2)
				m := s.startProposal(replacements, "old-0")
				unreadable.Actor, unreadable.As = "lifecycle", fault.Unknown
				s.InjectFaults(unreadable)
				m.deliver(event.Confirmed, fault.Unknown)
				s.expectStates("proposed ", "old-0")
				s.ClearFaults()
				m.deliver(event.Confirmed, "")
				s.expectStates(confirmed, "old-0")
			})
		}
	}
}

// A rollback goes on once the node can be read, so that the node does not keep its taint.
func TestRollbackWaitsForUnreadableNode(t *testing.T) {
	s := newInitializedCluster(t, 2)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.advance(2 * time.Second)
	s.handleMessage(s.newMessage(launchSettled("new", 1)), "")
	s.startService(unlistableClient{s.ClientFor("lifecycle"), cluster.Nodes})
	s.cache.DeliverAll()
	if err := s.svc.Step(t.Context()); err == nil {
		t.Error("Step returned no error")
	}
	s.expectStates(stateActing, "old-0")
	s.restartService()
	s.advance(5 * time.Second)
	s.expectStates(stateUntouched, "old-0")
}

// A replacement goes on if an old node was deleted, for example by its cloud provider, before lifecycle reads it.
func TestReplacementOfDeletedNode(t *testing.T) {
	s := newInitializedCluster(t, 2)
	m := s.startProposal(1, "old-0", "old-1")
	m.deliver(event.Confirmed, "")
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "old-0"}, func(o cluster.Object) { o.SetFinalizers(nil) })
	if err := s.Delete(t.Context(), cluster.Nodes, cluster.Key{Name: "old-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	s.launchReplacement()
	s.advance(8 * time.Second)
	s.expectStates("going", "old-0", "old-1")
}
