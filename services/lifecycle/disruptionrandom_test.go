package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// randomScenario is a cluster with random events in random order: overlapping proposals,
// duplicate confirmations and late drops, replacements that succeed or fail, batches, notices,
// lost swaps and crashes.
type randomScenario struct {
	*testCluster
	draw      *rapid.T
	proposals []testProposal
	// answeredIntents are the intents with a launch result.
	answeredIntents []string
	client          *crashingClient
}

// deliver delivers a message. After a crash a new process starts. Rejections are expected.
func (u *randomScenario) deliver(e event.Envelope) {
	u.cache.DeliverAll()
	err := u.svc.Handle(u.t.Context(), e)
	if u.client != nil && u.client.writesLeft < 0 {
		u.client = nil
		u.restartService()
		return
	}
	if err != nil && !fault.Is(err, fault.Stale, fault.Retry, fault.Conflict) {
		u.draw.Fatalf("%s: %v", e.Type, err)
	}
}

func (u *randomScenario) drawClaim() string {
	return fmt.Sprintf("old-%d", rapid.IntRange(0, 4).Draw(u.draw, "node"))
}

func (u *randomScenario) proposeRandom() {
	m := u.newProposal(fmt.Sprintf("p%d", len(u.proposals)), u.drawClaim())
	if other := u.drawClaim(); other != m.Claims[0] {
		m.Claims = append(m.Claims, other)
	}
	m.Moved = len(m.Claims)
	m.Plan = u.storeReplacementPlan(fmt.Sprintf("new%d", len(u.proposals)), rapid.IntRange(0, 1).Draw(u.draw, "replacements"))
	u.proposals = append(u.proposals, m)
	u.deliver(m.envelope(event.Proposed))
}

func (u *randomScenario) sendPhase(phase event.Phase) {
	if len(u.proposals) > 0 {
		u.deliver(rapid.SampledFrom(u.proposals).Draw(u.draw, "proposal").envelope(phase))
	}
}

// settleLaunches answers the launches of replacements, with or without success.
func (u *randomScenario) settleLaunches() {
	for _, e := range u.takeSent() {
		if ask, err := event.DecodeBody[event.LaunchRequested](e); err == nil && e.Type == event.LaunchRequestedType && !slices.Contains(u.answeredIntents, ask.Intent) {
			u.answeredIntents = append(u.answeredIntents, ask.Intent)
			if !rapid.Bool().Draw(u.draw, "it comes") {
				u.deliver(u.newMessage(launchSettled(ask.Intent, 1)))
				continue
			}
			u.joinNode(ask.Intent+"-0", "i-"+ask.Intent)
			u.deliver(u.newMessage(launchSettled(ask.Intent, 1, "i-"+ask.Intent)))
		}
	}
}

func (u *randomScenario) advanceRandomly() {
	for range rapid.IntRange(1, 4).Draw(u.draw, "looks") {
		u.now = u.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, 20 * time.Second}).Draw(u.draw, "time"))
		u.cache.DeliverAll()
		err := u.svc.Step(u.t.Context())
		if u.client != nil && u.client.writesLeft < 0 {
			u.client = nil
			u.restartService()
		} else if err != nil {
			u.draw.Fatal(err)
		}
	}
}

func (u *randomScenario) runRandomAction() {
	switch rapid.IntRange(0, 11).Draw(u.draw, "what") {
	case 0, 1:
		u.proposeRandom()
	case 2, 3:
		u.sendPhase(event.Confirmed)
	case 4:
		u.sendPhase(event.Dropped)
	case 5:
		u.settleLaunches()
	case 6:
		u.deliver(u.noticeMessage(event.SpotInterruption, fmt.Sprintf("i-%d", rapid.IntRange(0, 4).Draw(u.draw, "instance")), "terminate"))
	case 7:
		u.client = &crashingClient{Client: u.ClientFor("lifecycle"), writesLeft: rapid.IntRange(0, 8).Draw(u.draw, "writes"), completesLast: rapid.Bool().Draw(u.draw, "done")}
		u.startService(u.client)
	case 8:
		u.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.NodeClaims, As: fault.Conflict, Times: 2})
	case 9:
		u.insertBatch()
	default:
		u.advanceRandomly()
	}
}

// insertBatch inserts a batch of the watcher, which finds the outbox idle or abandons its plan.
func (u *randomScenario) insertBatch() {
	if held := u.readOutbox(); held.State == outbox.Sent {
		if _, err := held.Swap(u.t.Context(), u.Server, outbox.Outbox{Epoch: 1, Seq: held.Seq + 1, State: outbox.Done}); err != nil {
			u.draw.Fatal(err)
		}
		return
	}
	u.startBatch()
}

// In any order of events, no proposal starts beyond the budget, no claim is created beyond the
// limit, no node is deleted before its replacement is initialized, and in the end nothing is
// incomplete.
func TestRandomEventsRespectBudgets(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		u := &randomScenario{testCluster: newInitializedCluster(t, 5), draw: draw}
		limit := rapid.IntRange(5, 7).Draw(draw, "limit") // Five exist, and the budget alone would allow two more.
		switch rapid.IntRange(0, 2).Draw(draw, "rule") {
		case 0:
			u.setBudgetAndPriceLimit("2", limit)
		case 1:
			u.setBudgetAndLimit("2", limit)
			u.setStrictLimits()
		default:
			limit -= 2 // Claims that are being replaced do not count.
			u.setBudgetAndLimit("2", limit)
		}
		for range 30 {
			u.runRandomAction()
		}
		u.restartService()
		u.ClearFaults()
		// The watcher abandons a plan that is not executed. Its message is not redelivered here.
		for u.now = u.now.Add(2 * time.Minute); u.readOutbox().State != outbox.Done; {
			u.insertBatch()
		}
		for range 12 {
			u.settleLaunches()
			u.now = u.now.Add(time.Minute)
			u.reconcile()
		}
		if wrong := u.findViolation(2, limit); wrong != "" {
			draw.Fatal(wrong)
		}
		for _, c := range u.listClaims() {
			if p := planning.ReadProposal(c); c.DeletionTimestamp == nil && disruption.ActingProposal(c) != nil {
				draw.Fatalf("%s is still marked as in execution: %+v", c.Name, p)
			}
			if got := u.disruptionState(c.Name); got != "going" && got != stateUntouched && got != "proposed " {
				draw.Fatalf("%s ended in the state %q", c.Name, got)
			}
		}
	})
}
