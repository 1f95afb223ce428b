package lifecycle_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// pausedClient is the client of a replica that is paused before its first write of a claim, while
// other clients write.
type pausedClient struct {
	cluster.Client
	before    memcluster.Verb
	meanwhile func()
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
