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

// play tells the story of two nodes and their replacement with a lifecycle that dies
// once, at its nth write, before it takes effect or after it. It says whether anybody
// died.
type play struct {
	move
	dying *mortal
	// again says that the confirmation comes again after the death, and comes that the
	// replacement's launch succeeds.
	again, comes bool
	limit        int

	revived  bool
	launched bool
	since    time.Time
}

func (p *play) dead() bool { return p.dying.left < 0 }

// revive starts another process where the first has just died.
func (p *play) revive() bool {
	if !p.dead() || p.revived {
		return false
	}
	p.revived = true
	p.restart()
	return true
}

// told hands the confirmation to whoever lives, and to a new process when it dies.
func (p *play) told() {
	err := p.svc.Handle(p.t.Context(), p.fact(event.Confirmed))
	if !p.dead() && err != nil {
		p.t.Fatalf("nobody died: %v", err)
	}
	if !p.dead() {
		return
	}
	p.revive()
	p.cache.Flush()
	if !p.again {
		return
	}
	if err := p.svc.Handle(p.t.Context(), p.fact(event.Confirmed)); err != nil && !fault.Is(err, fault.Stale) {
		p.t.Fatalf("the message that came again: %v", err)
	}
}

// after lets that much time pass, after which the launcher, the machine, the catalog
// and the watcher do their parts.
func (p *play) after(d time.Duration) {
	p.revive()
	p.now = p.now.Add(d)
	p.cache.Flush()
	if err := p.svc.Step(p.t.Context()); !p.dead() && err != nil {
		p.t.Fatal(err)
	}
	p.revive()
	p.launch()
	p.giveUp()
}

// counts is the catalog, which shows what runs: a binding that was half written is
// made whole by it.
func (p *play) counts() {
	if !p.launched || !p.comes {
		return
	}
	shown := []event.Listed{listed("i-new", "new", "new-0")}
	for i := range 3 {
		shown = append(shown, listed(fmt.Sprintf("i-%d", i), "old", fmt.Sprintf("old-%d", i)))
	}
	p.cache.Flush()
	if err := p.svc.Handle(p.t.Context(), p.inventory(p.now, shown...)); err != nil && !p.dead() {
		p.t.Fatal(err)
	}
}

func (p *play) launch() {
	asked := slices.ContainsFunc(p.sent(), func(e event.Envelope) bool { return e.Type == event.LaunchRequestedType })
	if p.launched || !asked {
		return
	}
	p.launched = true
	body := settled("new", 1)
	if p.comes {
		body = settled("new", 1, "i-new")
		p.join("new-0", "i-new")
	}
	p.cache.Flush()
	err := p.svc.Handle(p.t.Context(), p.message(body))
	if p.revive() {
		p.cache.Flush()
		err = p.svc.Handle(p.t.Context(), p.message(body))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// giveUp is the watcher, which waits for a plan that is applied for two minutes.
func (p *play) giveUp() {
	held := p.outbox()
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

// ends checks that everything came to an end, whichever it is.
func (p *play) ends(name string) (moved bool) {
	p.t.Helper()
	p.audit(2, p.limit)
	for _, c := range p.claims() {
		if _, _, planned := admission.BatchOf(c); planned && !admission.IsAdmitted(c) && c.DeletionTimestamp == nil {
			p.t.Errorf("%s: %s is forgotten at the door", name, c.Name)
		}
	}
	one, other := p.disrupted("old-0"), p.disrupted("old-1")
	// What is only proposed is disruption's to confirm again, or to drop.
	proposed := func(text string) bool { return text == untouched || text == "proposed " && !p.again }
	if one != other && (!proposed(one) || !proposed(other)) || !proposed(one) && one != "going" {
		p.t.Errorf("%s: the old nodes are %q and %q", name, one, other)
	}
	if got := p.disrupted("old-2"); got != untouched {
		p.t.Errorf("%s: somebody else is %q", name, got)
	}
	return one == "going"
}

// A lifecycle that dies at any write of the saga is followed by one that finishes it
// or takes it back, whether the message comes again or is lost; at every instant the
// budget and the limit hold, and no node is deleted before its replacement is there.
func TestCrashAnywhere(t *testing.T) {
	for _, c := range []struct{ again, comes bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		t.Run(fmt.Sprintf("again %v, comes %v", c.again, c.comes), func(t *testing.T) {
			t.Parallel()
			ended := map[bool]int{}
			n := 0
			for died := true; died; n++ {
				for _, done := range []bool{false, true} {
					p, moved := crashing(t, n, done, c.again, c.comes)
					died = p.dead()
					ended[moved]++
				}
			}
			t.Logf("%d writes; %d ended with the nodes moved, %d were taken back", n-1, ended[true], ended[false])
			if n < 12 {
				t.Errorf("the story has only %d writes", n-1)
			}
			if c.comes != (ended[true] > 0) || !c.comes && ended[false] != 2*n {
				t.Errorf("%d ended with the nodes moved, and %d taken back", ended[true], ended[false])
			}
		})
	}
}

func crashing(t *testing.T, n int, done, again, comes bool) (*play, bool) {
	s := estate(t, 3)
	limit := 4
	if again {
		limit = 2 // Two of three are replaced by one.
		s.bounded("2", limit)
	} else {
		s.frugal("2", limit)
	}
	p := &play{move: s.moves(1, "old-0", "old-1"), again: again, comes: comes, limit: limit}
	s.sent()
	p.since = s.now
	p.dying = &mortal{Client: s.As("lifecycle"), left: n, done: done}
	s.start(p.dying)
	p.told()
	for range 10 {
		p.after(time.Second)
	}
	for range 7 {
		for range 3 {
			p.after(10 * time.Second)
		}
		p.counts()
	}
	for range 4 {
		p.after(time.Second)
	}
	moved := p.ends(fmt.Sprintf("write %d, done %t", n, done))
	if moved {
		if c := s.claim("new-0"); c == nil || !c.Status.Conditions.True(karpenter.ConditionTypeInitialized) {
			t.Errorf("write %d, done %t: nothing came for the nodes that went", n, done)
		}
	}
	return p, moved
}
