package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// crashScenario replaces two nodes while lifecycle crashes once, at its nth write, before or
// after the write takes effect.
type crashScenario struct {
	testProposal
	client *crashingClient
	// redelivers reports that the confirmation is redelivered after the crash. launchSucceeds
	// reports that the replacement is launched.
	redelivers, launchSucceeds bool
	limit                      int

	restarted bool
	launched  bool
	since     time.Time
}

func (p *crashScenario) hasCrashed() bool { return p.client.writesLeft < 0 }

// restartIfCrashed starts a new process once after a crash.
func (p *crashScenario) restartIfCrashed() bool {
	if !p.hasCrashed() || p.restarted {
		return false
	}
	p.restarted = true
	p.restartService()
	return true
}

// deliverConfirmation delivers the confirmation, and again to a new process after a crash.
func (p *crashScenario) deliverConfirmation() {
	err := p.svc.Handle(p.t.Context(), p.envelope(event.Confirmed))
	if !p.hasCrashed() && err != nil {
		p.t.Fatalf("returned an error without a crash: %v", err)
	}
	if !p.hasCrashed() {
		return
	}
	p.restartIfCrashed()
	p.cache.DeliverAll()
	if !p.redelivers {
		return
	}
	if err := p.svc.Handle(p.t.Context(), p.envelope(event.Confirmed)); err != nil && !fault.Is(err, fault.Stale) {
		p.t.Fatalf("the redelivered message failed: %v", err)
	}
}

// advanceWithPeers advances the time and then runs the launcher, the instance, the catalog and
// the watcher.
func (p *crashScenario) advanceWithPeers(d time.Duration) {
	p.restartIfCrashed()
	p.now = p.now.Add(d)
	p.cache.DeliverAll()
	if err := p.svc.Step(p.t.Context()); !p.hasCrashed() && err != nil {
		p.t.Fatal(err)
	}
	p.restartIfCrashed()
	p.settleLaunch()
	p.abandonPlan()
}

// deliverInventory delivers the catalog's inventory, which completes an interrupted binding.
func (p *crashScenario) deliverInventory() {
	if !p.launched || !p.launchSucceeds {
		return
	}
	shown := []event.Listed{listedInstance("i-new", "new", "new-0")}
	for i := range 3 {
		shown = append(shown, listedInstance(fmt.Sprintf("i-%d", i), "old", fmt.Sprintf("old-%d", i)))
	}
	p.cache.DeliverAll()
	if err := p.svc.Handle(p.t.Context(), p.inventoryMessage(p.now, shown...)); err != nil && !p.hasCrashed() {
		p.t.Fatal(err)
	}
}

func (p *crashScenario) settleLaunch() {
	asked := slices.ContainsFunc(p.takeSent(), func(e event.Envelope) bool { return e.Type == event.LaunchRequestedType })
	if p.launched || !asked {
		return
	}
	p.launched = true
	body := launchSettled("new", 1)
	if p.launchSucceeds {
		body = launchSettled("new", 1, "i-new")
		p.joinNode("new-0", "i-new")
	}
	p.cache.DeliverAll()
	err := p.svc.Handle(p.t.Context(), p.newMessage(body))
	if p.restartIfCrashed() {
		p.cache.DeliverAll()
		err = p.svc.Handle(p.t.Context(), p.newMessage(body))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// abandonPlan acts as the watcher, which abandons a plan after two minutes in the state applying.
func (p *crashScenario) abandonPlan() {
	held := p.readOutbox()
	if held.State != outbox.Applying {
		p.since = p.now
		return
	}
	if p.now.Sub(p.since) >= 2*time.Minute {
		if _, err := held.Swap(p.t.Context(), p.Server, outbox.Outbox{Epoch: held.Epoch, Seq: held.Seq + 1, State: outbox.Done}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// checkEnd checks that the scenario ended, either completed or rolled back.
func (p *crashScenario) checkEnd(name string) (moved bool) {
	p.t.Helper()
	p.checkInvariants(2, p.limit)
	for _, c := range p.listClaims() {
		if _, _, planned := admission.BatchOf(c); planned && !admission.IsAdmitted(c) && c.DeletionTimestamp == nil {
			p.t.Errorf("%s: %s was never admitted", name, c.Name)
		}
	}
	one, other := p.disruptionState("old-0"), p.disruptionState("old-1")
	// Disruption confirms or drops proposals that are not confirmed yet.
	proposed := func(text string) bool { return text == stateUntouched || text == "proposed " && !p.redelivers }
	if one != other && (!proposed(one) || !proposed(other)) || !proposed(one) && one != "going" {
		p.t.Errorf("%s: the old nodes are in the states %q and %q", name, one, other)
	}
	if got := p.disruptionState("old-2"); got != stateUntouched {
		p.t.Errorf("%s: the third claim is in the state %q", name, got)
	}
	return one == "going"
}

// After a crash at any write of a disruption, a new process completes it or rolls it back, whether
// the message is redelivered or lost. Budget and limit are never exceeded, and no node is deleted
// before its replacement is initialized.
func TestCrashAtAnyWriteOfADisruption(t *testing.T) {
	for _, c := range []struct{ again, comes bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		t.Run(fmt.Sprintf("redelivered %v, replacement joins %v", c.again, c.comes), func(t *testing.T) {
			t.Parallel()
			ended := map[bool]int{}
			n := 0
			for died := true; died; n++ {
				for _, done := range []bool{false, true} {
					p, moved := newCrashScenario(t, n, done, c.again, c.comes)
					died = p.hasCrashed()
					ended[moved]++
				}
			}
			t.Logf("%d writes; %d runs moved the nodes, %d rolled back", n-1, ended[true], ended[false])
			if n < 12 {
				t.Errorf("the scenario has only %d writes", n-1)
			}
			if c.comes != (ended[true] > 0) || !c.comes && ended[false] != 2*n {
				t.Errorf("%d runs moved the nodes, and %d rolled back", ended[true], ended[false])
			}
		})
	}
}

func newCrashScenario(t *testing.T, n int, done, again, comes bool) (*crashScenario, bool) {
	s := newInitializedCluster(t, 3)
	limit := 4
	if again {
		limit = 2 // Two of three are replaced by one.
		s.setBudgetAndLimit("2", limit)
	} else {
		s.setBudgetAndPriceLimit("2", limit)
	}
	p := &crashScenario{testProposal: s.startProposal(1, "old-0", "old-1"), redelivers: again, launchSucceeds: comes, limit: limit}
	s.takeSent()
	p.since = s.now
	p.client = &crashingClient{Client: s.ClientFor("lifecycle"), writesLeft: n, completesLast: done}
	s.startService(p.client)
	p.deliverConfirmation()
	for range 10 {
		p.advanceWithPeers(time.Second)
	}
	for range 7 {
		for range 3 {
			p.advanceWithPeers(10 * time.Second)
		}
		p.deliverInventory()
	}
	for range 4 {
		p.advanceWithPeers(time.Second)
	}
	moved := p.checkEnd(fmt.Sprintf("crash at write %d, write took effect %t", n, done))
	if moved {
		if c := s.getClaim("new-0"); c == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
			t.Errorf("crash at write %d, write took effect %t: the old nodes were deleted without an initialized replacement", n, done)
		}
	}
	return p, moved
}
