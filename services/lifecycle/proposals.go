package lifecycle

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

const (
	// proposalsMax is how many facts about proposals may wait or be dealt with at a
	// time. Each pass of disruption says of every proposal what is to become of it, so
	// that one which finds no place here is dropped and said again: else a notice would
	// wait in the queue behind thousands of them.
	proposalsMax = Inbox * 3 / 4
	// proposalsTogether is how many of them share a turn, and what it lists: no more
	// than can begin in a few seconds at the client's rate, for the last of them is
	// counted with what is so old by then, and looks wait as long.
	proposalsTogether = 64
)

// proposalFact is one fact about a proposal, and what becomes of it.
type proposalFact struct {
	// ctx is that of the message: what is said of it goes on its line.
	ctx  context.Context
	e    event.Envelope
	body event.DisruptionProposed
	came time.Time
	err  error

	// What follows is known of a confirmation that goes on: the proposal's claims, what
	// replaces them, and whether it acts already.
	goesOn, acts bool
	claims       []*karpenter.NodeClaim
	plan         planning.Plan
}

// replaces reports whether it is of a proposal that needs other nodes first.
func (f *proposalFact) replaces() bool { return f.goesOn && len(f.plan.Intents) > 0 }

// removes reports whether it is of one whose nodes may go at once.
func (f *proposalFact) removes() bool { return f.goesOn && len(f.plan.Intents) == 0 }

// claimNames are the names of the claims that go.
func (f *proposalFact) claimNames() []string {
	names := make([]string, len(f.claims))
	for i, c := range f.claims {
		names[i] = c.Name
	}
	return names
}

// proposalLane is where facts about proposals wait for their turn. Those that come
// while others are dealt with are dealt with together next.
type proposalLane struct {
	together *batcher.Convoy[*proposalFact]

	mu   sync.Mutex
	here map[string]bool
}

// proposals opens the lane. What is to happen in its turn goes through turn.
func (s *Service) proposals(turn func(context.Context, func(context.Context) error) error) *proposalLane {
	return &proposalLane{here: map[string]bool{}, together: batcher.New(batcher.Options[*proposalFact]{
		Lanes: 1, Items: proposalsTogether, Call: func(ctx context.Context, facts []*proposalFact) error {
			return turn(ctx, func(ctx context.Context) error { return s.hear(ctx, facts) })
		},
	})}
}

// deal waits until the fact is dealt with.
func (l *proposalLane) deal(ctx context.Context, e event.Envelope, came time.Time) error {
	body, err := event.As[event.DisruptionProposed](e)
	if err != nil {
		return err
	}
	f := &proposalFact{ctx: ctx, e: e, body: body, came: came}
	if err := l.enter(f.body); err != nil {
		return err
	}
	defer l.leave(f.body)
	if err := l.together.Do(ctx, f); err != nil {
		return err
	}
	return f.err
}

// enter refuses what need not be heard: it is here already, or is said again in a
// moment anyway.
func (l *proposalLane) enter(b event.DisruptionProposed) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.here[laneKey(b)]:
		return stale(b, "the same waits already for its turn")
	case len(l.here) >= proposalsMax:
		return stale(b, "%d others are here, and the next snapshot says it again", proposalsMax)
	}
	l.here[laneKey(b)] = true
	return nil
}

func (l *proposalLane) leave(b event.DisruptionProposed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.here, laneKey(b))
}

func laneKey(b event.DisruptionProposed) string { return b.Proposal + "/" + string(b.Phase) }

// proposed takes one fact about a proposal by itself.
func (s *Service) proposed(ctx context.Context, e event.Envelope, b event.DisruptionProposed) error {
	f := &proposalFact{ctx: ctx, e: e, body: b, came: s.Now()}
	s.take(ctx, []*proposalFact{f})
	return f.err
}

// hear takes the facts of one turn.
func (s *Service) hear(ctx context.Context, facts []*proposalFact) error {
	leads, err := s.Leads(ctx)
	if err != nil {
		return err
	}
	if !leads {
		return fault.F("handling "+string(event.DisruptionProposedType), fault.Retry, "another replica leads")
	}
	ctx, cancel := context.WithTimeout(ctx, factLimit)
	defer cancel()
	came := s.Now()
	for _, f := range facts {
		host.Say(f.ctx, "together", len(facts), "waited_ms", came.Sub(f.came).Milliseconds())
	}
	return s.election.Act(ctx, func(ctx context.Context) error {
		s.take(ctx, latest(facts))
		return nil
	})
}

// take takes a phase of each of several proposals, and tells each fact what became of
// it. A first proposal is only written on the claims; the next snapshot carries it,
// and only a confirmation of what is written acts. From then on it is ours: its end,
// or its being rolled back, takes it off (sagas).
//
// Removals act beside each other, for each takes its room from what was listed for
// all. Replacements go one after the other, for they share the outbox; each counts
// those before it.
func (s *Service) take(ctx context.Context, facts []*proposalFact) {
	s.eachFact(ctx, facts, s.heedPhase)
	removals := only(facts, (*proposalFact).removes)
	if len(removals) > 0 {
		l, err := s.live(ctx)
		s.eachFact(ctx, removals, func(ctx context.Context, f *proposalFact) error {
			if err != nil {
				return err
			}
			return s.beginRemoval(ctx, f, l)
		})
	}
	var l *live
	for _, f := range only(facts, (*proposalFact).replaces) {
		s.eachFact(ctx, []*proposalFact{f}, func(ctx context.Context, f *proposalFact) (err error) {
			known := l
			l = nil // Whoever fails leaves nothing that could be relied on.
			l, err = s.beginReplacement(ctx, f, known)
			return err
		})
	}
}

// heedPhase does what a fact asks for, but for a confirmation, which is only looked at.
func (s *Service) heedPhase(ctx context.Context, f *proposalFact) error {
	switch b := f.body; {
	case b.Phase == event.Dropped:
		return s.drop(ctx, b)
	case !disruption.BudgetedReason(b.Reason):
		return fault.F("taking proposal "+b.Proposal, fault.Poison, "there is no reason %q by which budgets could be counted", b.Reason)
	case b.Phase == event.Proposed:
		return s.propose(ctx, b)
	default:
		return s.confirmed(ctx, f)
	}
}

// eachFact does something for several facts beside each other, until the context ends
// that they share. One that trips a bug is alone with it.
func (s *Service) eachFact(ctx context.Context, facts []*proposalFact, do func(context.Context, *proposalFact) error) {
	failures := s.do.Each(len(facts), func(i int) error {
		own, cancel := context.WithCancel(facts[i].ctx)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return do(own, facts[i])
	})
	for i, err := range failures {
		facts[i].err = err
	}
}

func only(facts []*proposalFact, which func(*proposalFact) bool) []*proposalFact {
	return slices.DeleteFunc(slices.Clone(facts), func(f *proposalFact) bool { return !which(f) })
}

// latest are the facts without those that others of the same turn overtake. Of one
// proposal the newest counts, unless one of them takes it back: whatever else was
// said of it, it has not been right all the time.
func latest(facts []*proposalFact) []*proposalFact {
	last := map[string]*proposalFact{}
	for _, f := range facts {
		if before := last[f.body.Proposal]; before == nil || f.overtakes(before) {
			last[f.body.Proposal] = f
		}
	}
	for _, f := range facts {
		if last[f.body.Proposal] != f {
			f.err = stale(f.body, "another fact about it came at the same time")
		}
	}
	return only(facts, func(f *proposalFact) bool { return last[f.body.Proposal] == f })
}

func (f *proposalFact) overtakes(before *proposalFact) bool {
	if drops := f.body.Phase == event.Dropped; drops != (before.body.Phase == event.Dropped) {
		return drops
	}
	return f.body.Decided.After(before.body.Decided)
}
