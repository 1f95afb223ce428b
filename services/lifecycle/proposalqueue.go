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
	// maxProposals is how many messages about proposals may wait or be handled at a time.
	// Disruption repeats each message with its next snapshot, so excess messages are dropped;
	// otherwise notices would wait behind thousands of them.
	maxProposals = MaxInFlight * 3 / 4
	// proposalBatchSize is how many of them share a turn and its lists. It is limited to the number
	// that can be started within a few seconds at the client's rate, because the last one uses the
	// oldest lists and reconciles wait as long.
	proposalBatchSize = 64
)

// proposalMessage is one message about a proposal, and its result.
type proposalMessage struct {
	// ctx is the context of the message; its log fields go to the message's log line.
	ctx      context.Context
	envelope event.Envelope
	body     event.DisruptionProposed
	received time.Time
	err      error

	// The following fields are set for a valid confirmation: its claims, their replacements and
	// whether the proposal is already confirmed. An error ends it.
	isConfirmed, isActing bool
	claims                []*karpenter.NodeClaim
	plan                  planning.Plan
}

// needsReplacement reports whether the proposal requires other nodes first.
func (f *proposalMessage) needsReplacement() bool {
	return f.err == nil && f.isConfirmed && len(f.plan.Intents) > 0
}

// isRemoval reports whether the nodes may be removed at once.
func (f *proposalMessage) isRemoval() bool {
	return f.err == nil && f.isConfirmed && len(f.plan.Intents) == 0
}

// claimNames returns the names of the claims to remove.
func (f *proposalMessage) claimNames() []string {
	names := make([]string, len(f.claims))
	for i, c := range f.claims {
		names[i] = c.Name
	}
	return names
}

// proposalQueue queues messages about proposals for their turn. Messages that arrive during a
// turn are handled together in the next one.
type proposalQueue struct {
	batches *batcher.CallBatcher[*proposalMessage]

	mu      sync.Mutex
	pending map[string]bool
}

// newProposalQueue returns the queue. turn runs each batch in its turn.
func (s *Service) newProposalQueue(turn runInTurn) *proposalQueue {
	return &proposalQueue{pending: map[string]bool{}, batches: batcher.New(batcher.Options[*proposalMessage]{
		MaxCalls: 1, MaxItems: proposalBatchSize, Call: func(ctx context.Context, facts []*proposalMessage) error {
			return turn(ctx, func(ctx context.Context) error { return s.handleProposals(ctx, facts) })
		},
	})}
}

// handle waits until the message is handled.
func (l *proposalQueue) handle(ctx context.Context, e event.Envelope, came time.Time) error {
	body, err := event.DecodeBody[event.DisruptionProposed](e)
	if err != nil {
		return err
	}
	f := &proposalMessage{ctx: ctx, envelope: e, body: body, received: came}
	if err := l.add(f.body); err != nil {
		return err
	}
	defer l.remove(f.body)
	if err := l.batches.Do(ctx, f); err != nil {
		return err
	}
	return f.err
}

// add returns an error for a message that may be dropped: the same message is already waiting, or
// the queue is full and the message will be repeated.
func (l *proposalQueue) add(b event.DisruptionProposed) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.pending[proposalKey(b)]:
		return staleProposal(b, "the same message is already waiting")
	case len(l.pending) >= maxProposals:
		return staleProposal(b, "%d other messages are waiting, and the next snapshot repeats this one", maxProposals)
	}
	l.pending[proposalKey(b)] = true
	return nil
}

func (l *proposalQueue) remove(b event.DisruptionProposed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, proposalKey(b))
}

func proposalKey(b event.DisruptionProposed) string { return b.Proposal + "/" + string(b.Phase) }

// handleDisruptionProposed handles one message about a proposal by itself.
func (s *Service) handleDisruptionProposed(ctx context.Context, e event.Envelope, b event.DisruptionProposed) error {
	f := &proposalMessage{ctx: ctx, envelope: e, body: b, received: s.Now()}
	s.processProposals(ctx, []*proposalMessage{f})
	return f.err
}

// handleProposals handles the messages of one turn.
func (s *Service) handleProposals(ctx context.Context, facts []*proposalMessage) error {
	leads, err := s.Leads(ctx)
	if err != nil {
		return err
	}
	if !leads {
		return fault.F("handling "+string(event.DisruptionProposedType), fault.Retry, "another replica leads")
	}
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	came := s.Now()
	for _, f := range facts {
		host.AddLogFields(f.ctx, "batch_size", len(facts), "waited_ms", came.Sub(f.received).Milliseconds())
	}
	return s.election.RunAsLeader(ctx, func(ctx context.Context) error {
		s.processProposals(ctx, latestMessages(facts))
		return nil
	})
}

// processProposals handles messages about several proposals and sets the result of each. A new
// proposal is only written on its claims. The next snapshot contains it, and a confirmation starts
// its execution. From then on reconcileDisruptions continues it until its end or its rollback.
//
// Removals run concurrently and share the budgets that were listed for all. Replacements run one
// after the other, because they share the outbox, and each counts the earlier ones. The claims of
// all of them are reserved before the first list.
func (s *Service) processProposals(ctx context.Context, facts []*proposalMessage) {
	s.forEachMessage(ctx, facts, s.processPhase)
	s.reserveMessages(ctx, facts)
	removals := filterMessages(facts, (*proposalMessage).isRemoval)
	if len(removals) > 0 {
		l, err := s.readLiveState(ctx, failedClaims(facts))
		s.forEachMessage(ctx, removals, func(ctx context.Context, f *proposalMessage) error {
			if err != nil {
				return err
			}
			return s.startRemoval(ctx, f, l)
		})
	}
	var l *liveState
	for _, f := range filterMessages(facts, (*proposalMessage).needsReplacement) {
		failed := failedClaims(facts)
		s.forEachMessage(ctx, []*proposalMessage{f}, func(ctx context.Context, f *proposalMessage) (err error) {
			known := l
			l = nil // After an error the live state is unknown.
			l, err = s.startReplacement(ctx, f, known, failed)
			return err
		})
	}
}

// processPhase handles a message by its phase. A confirmation is only prepared.
func (s *Service) processPhase(ctx context.Context, f *proposalMessage) error {
	switch b := f.body; {
	case b.Phase == event.Dropped:
		return s.dropProposal(ctx, b)
	case !disruption.BudgetedReason(b.Reason):
		return fault.F("handling proposal "+b.Proposal, fault.Poison, "budgets do not apply to the reason %q", b.Reason)
	case b.Phase == event.Proposed:
		return s.recordProposal(ctx, b)
	default:
		return s.prepareConfirmation(ctx, f)
	}
}

// forEachMessage calls do for the messages concurrently, until their shared context ends. A panic
// affects only its own message.
func (s *Service) forEachMessage(ctx context.Context, facts []*proposalMessage, do func(context.Context, *proposalMessage) error) {
	failures := s.executor.ForEach(len(facts), func(i int) error {
		own, cancel := context.WithCancel(facts[i].ctx)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return do(own, facts[i])
	})
	for i, err := range failures {
		facts[i].err = err
	}
}

// failedClaims returns the names of the claims whose messages ended with an error. The request that
// confirms such a claim may be executed later, as long as the claim is reserved.
func failedClaims(facts []*proposalMessage) map[string]bool {
	failed := map[string]bool{}
	for _, f := range facts {
		for _, c := range f.claims {
			if f.err != nil {
				failed[c.Name] = true
			}
		}
	}
	return failed
}

func filterMessages(facts []*proposalMessage, which func(*proposalMessage) bool) []*proposalMessage {
	return slices.DeleteFunc(slices.Clone(facts), func(f *proposalMessage) bool { return !which(f) })
}

// latestMessages drops messages that another message of the same turn supersedes. The newest
// message about a proposal wins, except that a drop always wins: the proposal was not always valid
// in the meantime.
func latestMessages(facts []*proposalMessage) []*proposalMessage {
	last := map[string]*proposalMessage{}
	for _, f := range facts {
		if before := last[f.body.Proposal]; before == nil || f.supersedes(before) {
			last[f.body.Proposal] = f
		}
	}
	for _, f := range facts {
		if last[f.body.Proposal] != f {
			f.err = staleProposal(f.body, "a newer message about this proposal arrived at the same time")
		}
	}
	return filterMessages(facts, func(f *proposalMessage) bool { return last[f.body.Proposal] == f })
}

func (f *proposalMessage) supersedes(before *proposalMessage) bool {
	if drops := f.body.Phase == event.Dropped; drops != (before.body.Phase == event.Dropped) {
		return drops
	}
	return f.body.Decided.After(before.body.Decided)
}
