package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// deliverTogether delivers messages concurrently and returns their results. Of the messages about
// proposals the first has its own turn, and the others share the next. early is how many were
// handled before any turn.
func (s *testCluster) deliverTogether(facts ...event.Envelope) (kinds []fault.Kind, early int) {
	s.t.Helper()
	s.cache.DeliverAll()
	kinds = make([]fault.Kind, len(facts))
	synctest.Test(s.t, func(t *testing.T) {
		gate, closed, ended := host.NewMutex(), make(chan struct{}), make(chan struct{}, len(facts))
		lanes := s.svc.ConcurrentHandler(gate)
		go func() { _ = gate.RunLocked(t.Context(), func(context.Context) error { <-closed; return nil }) }()
		synctest.Wait()
		for i, e := range facts {
			go func() { kinds[i] = fault.KindOf(lanes(t.Context(), e)); ended <- struct{}{} }()
			synctest.Wait()
		}
		early = len(ended)
		close(closed)
		synctest.Wait()
	})
	return kinds, early
}

// proposeEmpty returns proposals of one empty node each, old enough to be confirmed.
func (s *testCluster) proposeEmpty(n int) []testProposal {
	s.t.Helper()
	var out []testProposal
	for i := range n {
		m := s.newProposal(fmt.Sprintf("p-%d", i), fmt.Sprintf("old-%d", i))
		m.Reason, m.Method = string(karpenter.DisruptionReasonEmpty), "Emptiness"
		m.deliver(event.Proposed, "")
		out = append(out, m)
	}
	s.advanceOnce(planning.ConfirmAfter)
	return out
}

func confirmedMessages(moves []testProposal) []event.Envelope {
	var out []event.Envelope
	for _, m := range moves {
		out = append(out, m.envelope(event.Confirmed))
	}
	return out
}

// Proposals of one turn share the remaining budgets, with or without concurrency.
func TestConcurrentProposalsShareBudgets(t *testing.T) {
	for _, parallel := range []int{1, 32} {
		t.Run(fmt.Sprintf("%d at once", parallel), func(t *testing.T) {
			s := newInitializedCluster(t, 10)
			s.setBudgetAndLimit("3", 10)
			moves := s.proposeEmpty(10)
			s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) { c.Parallel = parallel })
			kinds, _ := s.deliverTogether(confirmedMessages(moves)...)
			if diff := cmp.Diff(make([]fault.Kind, 10), kinds); diff != "" {
				t.Error(diff)
			}
			going := 0
			for i := range moves {
				switch got := s.disruptionState(fmt.Sprintf("old-%d", i)); got {
				case "going":
					going++
				case stateUntouched:
				default:
					t.Errorf("old-%d is in state %q", i, got)
				}
			}
			if going != 3 {
				t.Errorf("%d nodes are being deleted, the budget is 3", going)
			}
			s.checkInvariants(3, 10)
		})
	}
}

// countingClient counts the lists of claims, and panics on reads of one of them.
type countingClient struct {
	cluster.Client
	lists  int
	panics string
}

func (l *countingClient) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	if kind == cluster.NodeClaims {
		l.lists++
	}
	return l.Client.List(ctx, kind, namespace)
}

func (l *countingClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if key.Name == l.panics {
		panic("test panic")
	}
	return l.Client.Get(ctx, kind, key)
}

// The cluster is listed once per turn of removals.
func TestConcurrentRemovalsListOnce(t *testing.T) {
	s := newInitializedCluster(t, 40)
	moves := s.proposeEmpty(40)
	client := &countingClient{Client: s.ClientFor("lifecycle")}
	s.startService(client)
	kinds, _ := s.deliverTogether(confirmedMessages(moves)...)
	if diff := cmp.Diff(make([]fault.Kind, 40), kinds); diff != "" {
		t.Error(diff)
	}
	if client.lists != 2 {
		t.Errorf("40 removals in two turns listed the claims %d times", client.lists)
	}
	for _, m := range moves {
		s.expectStates("going", m.Claims...)
	}
}

// A panic affects only its own proposal.
func TestPanicAffectsOneProposal(t *testing.T) {
	s := newInitializedCluster(t, 4)
	moves := s.proposeEmpty(4)
	s.startService(&countingClient{Client: s.ClientFor("lifecycle"), panics: "old-2"}, func(c *lifecycle.Config) { c.Parallel = 8 })
	kinds, _ := s.deliverTogether(confirmedMessages(moves)...)
	if diff := cmp.Diff([]fault.Kind{"", "", fault.Bug, ""}, kinds); diff != "" {
		t.Error(diff)
	}
	s.expectStates("going", "old-0", "old-1", "old-3")
}

// Of several messages about one proposal the newest wins, and a dropped proposal is never executed.
func TestNewestMessageAboutProposalWins(t *testing.T) {
	s := newInitializedCluster(t, 3)
	moves := s.proposeEmpty(3)
	proposed := moves[2]
	proposed.Decided = proposed.Decided.Add(time.Minute)
	kinds, _ := s.deliverTogether(
		moves[0].envelope(event.Confirmed),
		moves[1].envelope(event.Confirmed), moves[1].envelope(event.Dropped),
		moves[2].envelope(event.Confirmed), proposed.envelope(event.Proposed),
	)
	if diff := cmp.Diff([]fault.Kind{"", fault.Stale, "", fault.Stale, ""}, kinds); diff != "" {
		t.Error(diff)
	}
	s.expectStates("going", "old-0")
	s.expectStates(stateUntouched, "old-1")
	s.expectStates("proposed ", "old-2")
}

// Excess and duplicate messages are dropped at once, so that notices do not wait in the queue
// behind them.
func TestExcessProposalsAreDropped(t *testing.T) {
	s := newTestCluster(t)
	var facts []event.Envelope
	for i := range lifecycle.MaxInFlight {
		facts = append(facts, s.newProposal(fmt.Sprintf("p-%d", i), "nobody").envelope(event.Dropped))
	}
	kinds, early := s.deliverTogether(append(facts, facts[0])...)
	const places = lifecycle.MaxInFlight * 3 / 4
	for i, kind := range kinds {
		if passed := kind == ""; passed != (i < places) || !passed && kind != fault.Stale {
			t.Fatalf("message %d of %d returned %q", i, len(facts), kind)
		}
	}
	if early != len(kinds)-places {
		t.Errorf("%d of %d messages did not wait", early, len(kinds))
	}
}

// The cluster is listed once for all replacements of a turn, unless another client admits claims in
// between. Each replacement counts the earlier ones.
func TestConcurrentReplacementsListOnce(t *testing.T) {
	const nodes = 5
	s := newInitializedCluster(t, nodes)
	s.setBudgetAndLimit("100%", nodes+3)
	s.setStrictLimits()
	var moves []testProposal
	for i := range nodes {
		m := s.newProposal(fmt.Sprintf("p-%d", i), fmt.Sprintf("old-%d", i))
		m.Plan = s.storeReplacementPlan(fmt.Sprintf("new-%d", i), 1)
		m.deliver(event.Proposed, "")
		moves = append(moves, m)
	}
	s.advanceOnce(planning.ConfirmAfter)
	client := &countingClient{Client: s.ClientFor("lifecycle")}
	s.startService(client)
	kinds, _ := s.deliverTogether(confirmedMessages(moves)...)
	if diff := cmp.Diff(make([]fault.Kind, nodes), kinds); diff != "" {
		t.Error(diff)
	}
	acts := 0
	for i := range nodes {
		if s.disruptionState(fmt.Sprintf("old-%d", i)) == stateActing {
			acts++
		}
	}
	if acts != 3 {
		t.Errorf("%d of %d proposals were started, the limit allows 3 more nodes", acts, nodes)
	}
	// The first has its own turn. The fourth is rejected, so the fifth lists again. Each executed one but the first
	// lists once more to launch its claims, because the outbox names earlier ones that are not in the cache.
	if client.lists != 3+acts-1 {
		t.Errorf("%d replacements in two turns listed the claims %d times", nodes, client.lists)
	}
	s.checkInvariants(nodes, nodes+3)
}

// Replacements of one turn count the earlier ones instead of the replaced claims: a pool at its
// limit can replace all of its nodes.
func TestConcurrentReplacementsAtLimit(t *testing.T) {
	const nodes = 3
	s := newInitializedCluster(t, nodes)
	s.setBudgetAndLimit("100%", nodes)
	var moves []testProposal
	for i := range nodes {
		m := s.newProposal(fmt.Sprintf("p-%d", i), fmt.Sprintf("old-%d", i))
		m.Plan = s.storeReplacementPlan(fmt.Sprintf("new-%d", i), 1)
		m.deliver(event.Proposed, "")
		moves = append(moves, m)
	}
	s.advanceOnce(planning.ConfirmAfter)
	kinds, _ := s.deliverTogether(confirmedMessages(moves)...)
	if diff := cmp.Diff(make([]fault.Kind, nodes), kinds); diff != "" {
		t.Error(diff)
	}
	for i := range nodes {
		s.expectStates(stateActing, fmt.Sprintf("old-%d", i))
	}
	s.checkInvariants(nodes, nodes)
}

// A message that cannot be parsed is parked at once. It does not take a turn.
func TestInvalidMessageIsParked(t *testing.T) {
	s := newTestCluster(t)
	for name, m := range map[string]event.Envelope{
		"proposal":      s.newProposal("p", "old-0").envelope(event.Proposed),
		"launch result": s.newMessage(launchSettled("one", 1, "i-1")),
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			m.Data = []byte(`{"claims": 7}`)
			kinds, early := s.deliverTogether(m)
			if diff := cmp.Diff([]fault.Kind{fault.Poison}, kinds); diff != "" || early != 1 {
				t.Errorf("%d messages were handled before the turn; %s", early, diff)
			}
		})
	}
}

// A message whose time ends while it waits for its turn fails, so that it is delivered again.
func TestLateMessageFails(t *testing.T) {
	s := newTestCluster(t)
	for name, m := range map[string]event.Envelope{
		"proposal":      s.newProposal("p", "old-0").envelope(event.Proposed),
		"launch result": s.newMessage(launchSettled("one", 1, "i-1")),
		"inventory":     s.inventoryMessage(s.now),
	} {
		t.Run(name, func(t *testing.T) {
			gate := host.NewMutex()
			err := gate.RunLocked(t.Context(), func(context.Context) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				return s.svc.ConcurrentHandler(gate)(ctx, m)
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the message returned the error %v", err)
			}
		})
	}
}
