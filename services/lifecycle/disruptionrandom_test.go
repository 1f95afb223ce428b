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

// tumult is a fleet to which anything happens in any order: proposals that overlap,
// are confirmed twice or dropped late, replacements that come or do not, batches
// between them, notices, lost swaps and processes that die.
type tumult struct {
	*site
	draw      *rapid.T
	proposals []move
	// asked are the replacements whose launch is asked for and not answered.
	asked []string
	dying *mortal
}

// heed is what becomes of a fact: whoever dies is followed by another process, and
// refusals are the ordinary course of things.
func (u *tumult) heed(e event.Envelope) {
	u.cache.Flush()
	err := u.svc.Handle(u.t.Context(), e)
	if u.dying != nil && u.dying.left < 0 {
		u.dying = nil
		u.restart()
		return
	}
	if err != nil && !fault.Is(err, fault.Stale, fault.Retry, fault.Conflict) {
		u.draw.Fatalf("%s: %v", e.Type, err)
	}
}

func (u *tumult) old() string {
	return fmt.Sprintf("old-%d", rapid.IntRange(0, 4).Draw(u.draw, "node"))
}

func (u *tumult) propose() {
	m := u.move(fmt.Sprintf("p%d", len(u.proposals)), u.old())
	if other := u.old(); other != m.Claims[0] {
		m.Claims = append(m.Claims, other)
	}
	m.Moved = len(m.Claims)
	m.Plan = u.replacing(fmt.Sprintf("new%d", len(u.proposals)), rapid.IntRange(0, 1).Draw(u.draw, "replacements"))
	u.proposals = append(u.proposals, m)
	u.heed(m.fact(event.Proposed))
}

func (u *tumult) say(phase event.Phase) {
	if len(u.proposals) > 0 {
		u.heed(rapid.SampledFrom(u.proposals).Draw(u.draw, "proposal").fact(phase))
	}
}

// answer settles the launch of a replacement, for better or worse.
func (u *tumult) answer() {
	for _, e := range u.sent() {
		if ask, err := event.As[event.LaunchRequested](e); err == nil && e.Type == event.LaunchRequestedType && !slices.Contains(u.asked, ask.Intent) {
			u.asked = append(u.asked, ask.Intent)
			if !rapid.Bool().Draw(u.draw, "it comes") {
				u.heed(u.message(settled(ask.Intent, 1)))
				continue
			}
			u.join(ask.Intent+"-0", "i-"+ask.Intent)
			u.heed(u.message(settled(ask.Intent, 1, "i-"+ask.Intent)))
		}
	}
}

func (u *tumult) later() {
	for range rapid.IntRange(1, 4).Draw(u.draw, "looks") {
		u.now = u.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, 20 * time.Second}).Draw(u.draw, "time"))
		u.cache.Flush()
		err := u.svc.Step(u.t.Context())
		if u.dying != nil && u.dying.left < 0 {
			u.dying = nil
			u.restart()
		} else if err != nil {
			u.draw.Fatal(err)
		}
	}
}

func (u *tumult) something() {
	switch rapid.IntRange(0, 11).Draw(u.draw, "what") {
	case 0, 1:
		u.propose()
	case 2, 3:
		u.say(event.Confirmed)
	case 4:
		u.say(event.Dropped)
	case 5:
		u.answer()
	case 6:
		u.heed(u.notice(event.SpotInterruption, fmt.Sprintf("i-%d", rapid.IntRange(0, 4).Draw(u.draw, "instance")), "terminate"))
	case 7:
		u.dying = &mortal{Client: u.As("lifecycle"), left: rapid.IntRange(0, 8).Draw(u.draw, "writes"), done: rapid.Bool().Draw(u.draw, "done")}
		u.start(u.dying)
	case 8:
		u.Inject(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.NodeClaims, As: fault.Conflict, Times: 2})
	case 9:
		u.between()
	default:
		u.later()
	}
}

// between is a batch of the watcher, which finds the outbox free or gives it up.
func (u *tumult) between() {
	if held := u.outbox(); held.State == outbox.Sent {
		if _, err := held.Swap(u.t.Context(), u.Server, outbox.Outbox{Epoch: 1, Seq: held.Seq + 1, State: outbox.Done}); err != nil {
			u.draw.Fatal(err)
		}
		return
	}
	u.batch()
}

// Whatever happens in whatever order, no proposal begins beyond the budget, no claim
// is made beyond the limit, no node is deleted before its replacement is there, and
// when all is quiet nothing is left half done.
func TestTumultKeepsToBudgets(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		u := &tumult{site: estate(t, 5), draw: draw}
		limit := rapid.IntRange(5, 7).Draw(draw, "limit") // Five are there, and the budget alone would let two more come.
		switch rapid.IntRange(0, 2).Draw(draw, "rule") {
		case 0:
			u.frugal("2", limit)
		case 1:
			u.bounded("2", limit)
			u.strict()
		default:
			limit -= 2 // What is being replaced does not count.
			u.bounded("2", limit)
		}
		for range 30 {
			u.something()
		}
		u.restart()
		u.Heal()
		// The watcher gives up a plan that nobody carries out: whoever died over it is not
		// told of it again here.
		for u.now = u.now.Add(2 * time.Minute); u.outbox().State != outbox.Done; {
			u.between()
		}
		for range 12 {
			u.answer()
			u.now = u.now.Add(time.Minute)
			u.step()
		}
		if wrong := u.wrongs(2, limit); wrong != "" {
			draw.Fatal(wrong)
		}
		for _, c := range u.claims() {
			if p := planning.ProposalOf(c); c.DeletionTimestamp == nil && disruption.ActingProposal(c) != nil {
				draw.Fatalf("%s still acts on %+v", c.Name, p)
			}
			if got := u.disrupted(c.Name); got != "going" && got != untouched && got != "proposed " {
				draw.Fatalf("%s is left %q", c.Name, got)
			}
		}
	})
}
