package protocol

// Steps of a replica of lifecycle in a disruption.
const (
	sagaIdle uint8 = iota
	// sagaNote writes a proposal on the NodeClaims, and sagaDrop removes one that is not confirmed.
	sagaNote
	sagaDrop
	// sagaReserve writes the reservation of a confirmation, before sagaCount counts the budget.
	sagaReserve
	sagaCount
	sagaConfirm
	// sagaMark writes the condition DisruptionReason, and sagaTaint the taint of the node that was marked last.
	sagaMark
	sagaTaint
	sagaSwap
	sagaCreate
	sagaFinish
	sagaDelete
	// sagaVerify reads the NodeClaim and sagaVerifyReplacement its replacement before the deletion.
	sagaVerify
	sagaVerifyReplacement
	// sagaStartReboot sets the conditions of a reboot, and sagaEndProposal then removes its proposal.
	sagaStartReboot
	sagaEndProposal
	sagaRebootTaint
	sagaRebootRecord
	sagaRebootSend
	sagaRebootIssue
	sagaRebootUntaint
	sagaRebootEnd
	// sagaRebootFail marks the reboot as failed, and sagaRebootDelete then deletes the NodeClaim.
	sagaRebootFail
	sagaRebootDelete
	// sagaUntaint and the steps behind it are a rollback.
	sagaUntaint
	sagaUnmark
	sagaUnpropose
)

// States of a replacement.
const (
	replacementNone uint8 = iota
	replacementCreated
	replacementInitialized
	replacementDeleting
	replacementGone
)

const commandCount = 2

// sagaClaim is the NodeClaim of a candidate, with its node.
type sagaClaim struct {
	Phase uint8
	// Note is the number of the command whose proposal it carries, plus one.
	Note                                   uint8
	Reserved, Confirmed, Marked, IsTainted bool
	// Ends is whether its node is drained and its instance is terminating.
	Ends   bool
	Reboot sagaReboot
}

// counts reports whether budgets count its node, for the next command.
func (c sagaClaim) counts() bool {
	return c.Phase == claimDeleting && !c.Ends || c.isActing() || c.Phase == claimPresent && c.Reboot.Step != rebootNone || c.Phase == claimPresent && c.Note != 0 && c.Reserved
}

func (c sagaClaim) isActing() bool { return c.Phase == claimPresent && c.Note != 0 && c.Confirmed }

// sagaWriter is what a replica remembers between two effects.
type sagaWriter struct {
	Step, Command uint8
	// Todo are the candidates that remain; At is the one that is being marked, plus one.
	Todo, At uint8
	// Acting are the candidates that carry a confirmed proposal, as last read. Stale are the candidates whose
	// proposal has changed since, and Changed all that have changed in any way.
	// NodeChanged are the candidates whose node has changed.
	Acting, Stale, Changed, NodeChanged uint8
	// IsConfirmation is whether the replica handles a confirmation, and not a reconcile.
	IsConfirmation, OutboxStale bool
	// Revokes is whether a rollback keeps the proposal, unconfirmed, because a batch was sent before its plan was admitted.
	Revokes bool
	// Unsure is whether a planted bug let the replica continue with a command that was undone, and Unready with a replacement
	// that is being deleted.
	Unsure, Unready bool
}

// lateWrite is a write of a NodeClaim or of its node whose replica has no answer. It may be executed at any later time, unless the
// object has changed since.
type lateWrite struct {
	// Kind is the action of the write, plus one, and zero for none.
	Kind, Claim, Command uint8
}

// sagaState is one state of the disruption of two nodes.
type sagaState struct {
	Claims       [claimCount]sagaClaim
	Replacements [commandCount]uint8
	// EverReady are the commands whose replacement was initialized once. Admitted are those whose plan the outbox showed as done.
	EverReady, Admitted uint8
	Outbox, Plan        uint8
	// Proposals and Confirmations are messages in flight. A message stays until it expires, so that it can be delivered any
	// number of times and in any order; a lost one is never delivered. Written are the commands that a snapshot may show.
	Proposals, Confirmations, Written uint8
	// Late are the commands whose replacements can no longer be admitted.
	Late    uint8
	Flight  lateWrite
	Writers [2]sagaWriter
}

// DisruptionModel is the disruption of nodes with two replicas of lifecycle and any number of replicas of disruption.
type DisruptionModel struct {
	Name string
	// Commands are the candidates of each command, as bits. Replaces is whether the commands have a replacement each.
	Commands []uint8
	Replaces bool
	// Reboots is whether the nodes are rebooted in place of removed.
	Reboots bool
	// Budget is how many nodes may be disrupted at once. If HasLease, one replica acts at a time, until it crashes.
	Budget   int
	HasLease bool
	// OnlyBudgets leaves out conditions and taints, which budgets do not count.
	OnlyBudgets bool
	// Late are the writes that may get no answer and be executed later, one at a time.
	Late []uint8
	// Bug is the name of a planted bug, or "".
	Bug string
}

// DisruptionModels returns the configurations that are explored.
func DisruptionModels() []DisruptionModel {
	counted := []uint8{sagaActWrite, sagaActReserve, sagaActConfirm, sagaActDelete, sagaActUnpropose}
	return []DisruptionModel{
		{Name: "one node and its replacement", Commands: []uint8{1}, Replaces: true, Budget: 1, Late: []uint8{sagaActDelete}},
		{Name: "two nodes with one replacement", Commands: []uint8{3}, Replaces: true, Budget: 2, HasLease: true},
		{Name: "an empty node", Commands: []uint8{1}, Budget: 1, Late: append(counted, sagaActMark, sagaActTaint, sagaActUntaint, sagaActUnmark)},
		{Name: "two empty nodes, one command each", Commands: []uint8{1, 2}, Budget: 2, HasLease: true},
		{Name: "a node that is rebooted", Commands: []uint8{1}, Reboots: true, Budget: 1},
		{Name: "two empty nodes, one command each, budget 1", Commands: []uint8{1, 2}, Budget: 1, OnlyBudgets: true, Late: counted},
	}
}

// firstUndo returns the first step of a rollback, and afterConfirm the step after the confirmation of all claims.
func (m DisruptionModel) firstUndo() uint8 {
	if m.OnlyBudgets {
		return sagaUnpropose
	}
	return sagaUntaint
}

func (m DisruptionModel) afterConfirm() uint8 {
	switch {
	case m.Reboots:
		return sagaStartReboot
	case !m.OnlyBudgets:
		return sagaMark
	case m.Replaces:
		return sagaSwap
	default:
		return sagaDelete
	}
}

// Initial returns the state without messages.
func (m DisruptionModel) Initial() (s sagaState) {
	for c := range s.Claims {
		s.Claims[c].Phase = claimRemoved
		for _, claims := range m.Commands {
			if claims&(1<<c) != 0 {
				s.Claims[c].Phase = claimPresent
			}
		}
	}
	return s
}

// Check returns the promise that a state breaks. All promises are checked with the actions.
func (m DisruptionModel) Check(sagaState) string { return "" }

// IsSettled reports whether every command has ended: its nodes are gone, or they have neither mark nor taint.
func (m DisruptionModel) IsSettled(s sagaState) bool {
	for _, c := range s.Claims {
		if c.Phase == claimDeleting || c.Phase == claimPresent && (c.Confirmed || c.Marked || c.IsTainted || c.Reboot.Step != rebootNone) {
			return false
		}
	}
	return s.Outbox != outboxApplying && s.Writers == [2]sagaWriter{}
}

// Sentence describes an action.
func (m DisruptionModel) Sentence(a ModelAction, swapped bool) string {
	if swapped {
		a.Who = 1 - a.Who
	}
	return fillSentence(sagaSentences[a.Kind], a)
}

// touchNote records that the proposal of a claim has changed.
func (s *sagaState) touchNote(c, by int) {
	s.touchClaim(c, by)
	for w := range s.Writers {
		if w != by && s.Writers[w].Step != sagaIdle {
			s.Writers[w].Stale |= 1 << c
		}
	}
}

// touchClaim records that a claim has changed.
func (s *sagaState) touchClaim(c, by int) {
	s.touchLate(c, false)
	for w := range s.Writers {
		if w != by && s.Writers[w].Step != sagaIdle {
			s.Writers[w].Changed |= 1 << c
		}
	}
}

// touchNode records that the node of a claim has changed.
func (s *sagaState) touchNode(c, by int) {
	s.touchLate(c, true)
	for w := range s.Writers {
		if w != by && s.Writers[w].Step != sagaIdle {
			s.Writers[w].NodeChanged |= 1 << c
		}
	}
}

// touchLate forgets a late write of a claim or of its node, which has changed: the write fails.
func (s *sagaState) touchLate(c int, isNode bool) {
	if f := s.Flight; f.Kind != 0 && int(f.Claim) == c && f.writesNode() == isNode {
		s.Flight = lateWrite{}
	}
}

func (f lateWrite) writesNode() bool { return f.Kind == sagaActTaint+1 || f.Kind == sagaActUntaint+1 }

// touchOutbox records that the outbox has changed.
func (s *sagaState) touchOutbox(by int) {
	for w := range s.Writers {
		if step := s.Writers[w].Step; w != by && step >= sagaCount && step <= sagaFinish && s.Writers[w].IsConfirmation {
			s.Writers[w].OutboxStale = true
		}
	}
}

// String returns the name of the configuration.
func (m DisruptionModel) String() string { return m.Name }
