package protocol

import "slices"

// Kinds of actions of a disruption.
const (
	sagaActPropose uint8 = iota
	sagaActSendConfirmation
	sagaActExpire
	sagaActReadProposal
	sagaActReadConfirmation
	sagaActWrite
	sagaActWriteLost
	sagaActReserve
	sagaActCountBudget
	sagaActReject
	sagaActConfirm
	sagaActStop
	sagaActMark
	sagaActTaint
	sagaActAdmit
	sagaActAdmitLost
	sagaActAdmitBatch
	sagaActRevoke
	sagaActCreateReplacement
	sagaActFinish
	sagaActReconcile
	sagaActVerify
	sagaActVerifyReplacement
	sagaActDelete
	sagaActDeleteLost
	sagaActUntaint
	sagaActUnmark
	sagaActUnpropose
	sagaActDrop
	sagaActClose
	sagaActInitialize
	sagaActFail
	sagaActReplacementGone
	sagaActAbandon
	sagaActDrain
	sagaActRemove
	sagaActUserDeletes
	sagaActUserClears
	sagaActInterrupt
	sagaActStartReboot
	sagaActRebootTaint
	sagaActRebootRecord
	sagaActRebootSend
	sagaActRebootIssue
	sagaActRebootUntaint
	sagaActRebootEnd
	sagaActRebootFail
	sagaActRebootDelete
	sagaActReboots
	sagaActRebootExpires
	sagaActDelay
	sagaActLand
	sagaActCrash
)

var sagaSentences = map[uint8]string{
	sagaActPropose: "Disruption proposes command %[2]d.", sagaActSendConfirmation: "Disruption confirms command %[2]d.",
	sagaActExpire:       "The messages about command %[2]d expire, and its replacements can no longer be admitted.",
	sagaActReadProposal: "%[1]s receives the proposal of command %[2]d and reads its NodeClaims.", sagaActReadConfirmation: "%[1]s receives the confirmation of command %[2]d and reads its NodeClaims and the outbox.",
	sagaActWrite: "%[1]s writes the proposal on NodeClaim %[2]d.", sagaActWriteLost: "%[1]s loses its write of the proposal on NodeClaim %[2]d, which has changed.",
	sagaActReserve: "%[1]s reserves NodeClaim %[2]d for its confirmation.", sagaActCountBudget: "%[1]s counts the budget for command %[2]d.", sagaActReject: "%[1]s rejects command %[2]d, whose budget is used.",
	sagaActConfirm: "%[1]s writes the confirmation on NodeClaim %[2]d.", sagaActStop: "%[1]s stops, because NodeClaim %[2]d no longer carries the command.",
	sagaActMark: "%[1]s writes the condition DisruptionReason of NodeClaim %[2]d.", sagaActTaint: "%[1]s taints node %[2]d.",
	sagaActAdmit: "%[1]s swaps the outbox to applying, with the replacement of command %[2]d.", sagaActAdmitLost: "%[1]s loses the swap of the outbox.",
	sagaActAdmitBatch: "%[1]s loses the swap of the outbox for command %[2]d to a batch.", sagaActRevoke: "%[1]s revokes the confirmation on NodeClaim %[2]d.",
	sagaActCreateReplacement: "%[1]s creates the replacement of command %[2]d.", sagaActFinish: "%[1]s swaps the outbox to done.",
	sagaActReconcile: "%[1]s reconciles NodeClaim %[2]d.", sagaActVerify: "%[1]s reads NodeClaim %[2]d again.",
	sagaActVerifyReplacement: "%[1]s reads the replacement of command %[2]d again.",
	sagaActDelete:            "%[1]s deletes NodeClaim %[2]d, and its node drains.", sagaActDeleteLost: "%[1]s does not delete NodeClaim %[2]d, which has changed.",
	sagaActUntaint: "%[1]s removes the taint of node %[2]d.", sagaActUnmark: "%[1]s removes the condition of NodeClaim %[2]d.",
	sagaActUnpropose: "%[1]s removes the proposal from NodeClaim %[2]d.", sagaActDrop: "Lifecycle removes the unconfirmed proposal from NodeClaim %[2]d.",
	sagaActClose: "The watcher gives up the plan in the outbox.", sagaActInitialize: "The replacement of command %[2]d is initialized.",
	sagaActFail: "The launch of the replacement of command %[2]d fails, and its NodeClaim is deleted.", sagaActReplacementGone: "The replacement of command %[2]d is gone.",
	sagaActAbandon: "Lifecycle deletes the replacement of command %[2]d, whose plan was given up.", sagaActDrain: "Node %[2]d is drained, and its instance terminates.",
	sagaActRemove: "NodeClaim %[2]d is removed.", sagaActUserDeletes: "A user deletes NodeClaim %[2]d or its node.",
	sagaActUserClears: "A user removes the proposal from NodeClaim %[2]d.", sagaActInterrupt: "The replacement of command %[2]d is interrupted and deleted.",
	sagaActStartReboot: "%[1]s writes the conditions DisruptionReason and Rebooting of NodeClaim %[2]d.", sagaActRebootTaint: "%[1]s adds the taint of reboots to node %[2]d.",
	sagaActRebootRecord: "%[1]s records the boot ID of node %[2]d, which is drained.", sagaActRebootSend: "%[1]s requests the reboot of node %[2]d.",
	sagaActRebootIssue: "%[1]s writes on NodeClaim %[2]d that the reboot is issued.", sagaActRebootUntaint: "%[1]s removes the taint of reboots from node %[2]d.",
	sagaActRebootEnd: "%[1]s writes on NodeClaim %[2]d that the reboot has ended.", sagaActRebootFail: "%[1]s writes on NodeClaim %[2]d that the reboot has failed.",
	sagaActRebootDelete: "%[1]s deletes NodeClaim %[2]d, whose reboot has failed.",
	sagaActReboots:      "EC2 reboots node %[2]d.", sagaActRebootExpires: "The requests to reboot node %[2]d expire.",
	sagaActDelay: "%[1]s gets no answer to its write of NodeClaim %[2]d or its node, and stops.", sagaActLand: "The late write of NodeClaim %[2]d or its node is executed.",
	sagaActCrash: "%[1]s crashes and restarts.",
}

// sagaStepper collects the steps from one state.
type sagaStepper struct {
	m     DisruptionModel
	s     sagaState
	steps []Transition[sagaState]
}

// add adds a step; the writers are ordered, because they are alike.
func (p *sagaStepper) add(kind, who, what uint8, next sagaState, broken string) {
	// A new proposal must not be needed to end an old one.
	rescue := slices.Contains([]uint8{sagaActCrash, sagaActAdmitBatch, sagaActUserDeletes, sagaActUserClears, sagaActInterrupt, sagaActPropose, sagaActSendConfirmation, sagaActDelay, sagaActLand}, kind)
	a := ModelAction{Kind: kind, Who: who, What: what, Rescue: rescue}
	for w := range next.Writers {
		next.Writers[w].forget(p.m)
	}
	if !p.m.Replaces {
		next.Late = 0
	}
	if isLess(&next.Writers[1], &next.Writers[0]) {
		next.Writers[0], next.Writers[1] = next.Writers[1], next.Writers[0]
		a.Swapped = true
	}
	p.steps = append(p.steps, Transition[sagaState]{a, next, broken})
}

// next adds a step after which writer w is as given.
func (p *sagaStepper) next(kind uint8, w int, what uint8, n sagaState, writer sagaWriter, broken string) {
	if writer.Step == sagaIdle {
		writer = sagaWriter{}
	}
	n.Writers[w] = writer
	p.add(kind, uint8(w), what, n, broken)
}

// Steps appends every step from a state.
func (m DisruptionModel) Steps(s sagaState, steps []Transition[sagaState]) []Transition[sagaState] {
	p := &sagaStepper{m, s, steps}
	p.stepMessages()
	for w := range s.Writers {
		p.stepWriter(w)
	}
	p.stepReplacements()
	p.landLateWrite()
	for c := range s.Claims {
		p.stepCandidate(c)
	}
	if s.Outbox == outboxApplying {
		n := s
		n.Outbox, n.Plan = outboxIdle, 0
		n.touchOutbox(-1)
		p.add(sagaActClose, 0, 0, n, "")
	}
	return p.steps
}

// stepMessages sends and expires messages. A snapshot may be old, so a replica of disruption may send again what another has sent.
func (p *sagaStepper) stepMessages() {
	for i := range p.m.Commands {
		command, bit := uint8(i), uint8(1)<<i
		n := p.s
		if n.Proposals |= bit; n != p.s {
			p.add(sagaActPropose, 0, command, n, "")
		}
		n = p.s
		if n.Confirmations |= p.s.Written & bit; n != p.s {
			p.add(sagaActSendConfirmation, 0, command, n, "")
		}
		n = p.s
		n.Confirmations &^= bit
		n.Proposals &^= bit
		if n.Late |= bit; n != p.s {
			p.add(sagaActExpire, 0, command, n, "")
		}
	}
}

// stepReplacements launches the replacements and lets them fail.
func (p *sagaStepper) stepReplacements() {
	for i := range p.m.Commands {
		command, bit := uint8(i), uint8(1)<<i
		change := func(kind, to uint8) {
			n := p.s
			if n.Replacements[i] = to; to == replacementInitialized {
				n.EverReady |= bit
			}
			p.add(kind, 0, command, n, "")
		}
		switch p.s.Replacements[i] {
		case replacementCreated:
			if p.s.Admitted&bit != 0 {
				change(sagaActInitialize, replacementInitialized)
				change(sagaActFail, replacementDeleting)
			} else if p.s.Plan != command+1 {
				change(sagaActAbandon, replacementDeleting)
			}
		case replacementInitialized:
			change(sagaActInterrupt, replacementDeleting)
		case replacementDeleting:
			change(sagaActReplacementGone, replacementGone)
		}
	}
}

// stepCandidate drains a node that is being deleted, and lets users change it.
func (p *sagaStepper) stepCandidate(c int) {
	p.stepReboot(c)
	claim, at := p.s.Claims[c], uint8(c)
	change := func(kind uint8, edit func(*sagaClaim)) {
		n := p.s
		edit(&n.Claims[c])
		n.touchNote(c, -1)
		n.touchNode(c, -1)
		p.add(kind, 0, at, n, "")
	}
	switch {
	case claim.Phase == claimDeleting && !claim.Ends:
		change(sagaActDrain, func(k *sagaClaim) { k.Ends, k.IsTainted = true, !p.m.OnlyBudgets })
	case claim.Phase == claimDeleting:
		change(sagaActRemove, func(k *sagaClaim) { *k = sagaClaim{Phase: claimRemoved} })
	case claim.Phase == claimPresent:
		change(sagaActUserDeletes, func(k *sagaClaim) { k.Phase = claimDeleting })
		if claim.Note != 0 {
			change(sagaActUserClears, func(k *sagaClaim) { k.Note, k.Confirmed, k.Reserved = 0, false, false })
		}
		if claim.Note != 0 && !claim.Confirmed {
			change(sagaActDrop, func(k *sagaClaim) { k.Note, k.Reserved = 0, false })
		}
	}
}
