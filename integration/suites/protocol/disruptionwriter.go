package protocol

// stepWriter takes the next effect of a replica of lifecycle.
func (p *sagaStepper) stepWriter(w int) {
	me := p.s.Writers[w]
	if me.Step != sagaIdle {
		p.next(sagaActCrash, w, 0, p.s, sagaWriter{}, "")
	}
	switch me.Step {
	case sagaIdle:
		if other := p.s.Writers[1-w]; !p.m.HasLease || other.Step == sagaIdle {
			p.receiveMessages(w)
			p.startReconcile(w)
		}
	case sagaNote:
		p.writeProposals(w)
	case sagaReserve:
		p.reserveClaims(w)
	case sagaCount:
		p.countBudget(w)
	case sagaConfirm:
		p.confirmClaims(w)
	case sagaMark:
		p.markClaims(w)
	case sagaTaint:
		p.taintNode(w)
	case sagaSwap, sagaCreate, sagaFinish:
		p.executePlan(w)
	case sagaVerify, sagaVerifyReplacement:
		p.verifyReplacement(w)
	case sagaDelete:
		p.deleteClaims(w)
	default:
		p.rebootOrRollBack(w)
	}
}

// rebootOrRollBack takes the next effect of a reboot or of a rollback.
func (p *sagaStepper) rebootOrRollBack(w int) {
	switch step := p.s.Writers[w].Step; {
	case step >= sagaUntaint:
		p.rollBack(w)
	case step >= sagaRebootTaint:
		p.takeRebootStep(w)
	default:
		p.startReboot(w)
	}
}

// receiveMessages reads the NodeClaims of a command. Without all of them the message is stale; so is a proposal if one carries another.
func (p *sagaStepper) receiveMessages(w int) {
	for i, claims := range p.m.Commands {
		command, bit := uint8(i), uint8(1)<<i
		free, carry, acting := p.readClaims(command)
		if p.s.Proposals&bit != 0 && free != 0 && free|carry == claims {
			p.next(sagaActReadProposal, w, command, p.s, sagaWriter{Step: sagaNote, Command: command, Todo: free}, "")
		}
		if p.s.Confirmations&bit == 0 || carry != claims {
			continue
		}
		me := sagaWriter{Step: p.firstStep(command, acting == claims), Command: command, Todo: claims, Acting: acting, IsConfirmation: true}
		if me.Step != sagaIdle {
			p.next(sagaActReadConfirmation, w, command, p.s, me, "")
		}
	}
}

// readClaims returns the candidates of a command without a proposal, the candidates that carry its proposal, and of these the
// confirmed ones.
func (p *sagaStepper) readClaims(command uint8) (free, carry, acting uint8) {
	for c, claim := range p.s.Claims {
		bit := p.m.Commands[command] & (1 << c)
		switch {
		case claim.Phase != claimPresent:
		case claim.Note == 0:
			free |= bit
		case claim.Note == command+1 && claim.Confirmed:
			carry, acting = carry|bit, acting|bit
		case claim.Note == command+1:
			carry |= bit
		}
	}
	return free, carry, acting
}

// firstStep returns the step that a confirmation begins with, or sagaIdle: the reconcile continues a command that has begun, and while
// a plan is in flight the message waits.
func (p *sagaStepper) firstStep(command uint8, hasBegun bool) uint8 {
	isApplying, isOwn := p.s.Outbox == outboxApplying, p.s.Plan == command+1
	switch r := p.s.Replacements[command]; {
	case !hasBegun && p.m.Replaces && isApplying, hasBegun && !p.m.Replaces:
		return sagaIdle
	case !hasBegun && p.m.Bug == "confirmed-without-reservation":
		return sagaCount
	case !hasBegun:
		return sagaReserve
	case isOwn && isApplying:
		return sagaCreate
	case !isOwn && (r == replacementNone || r == replacementGone):
		return p.m.firstUndo()
	default:
		return sagaIdle
	}
}

// writeProposals writes the proposal on the claims that had none.
func (p *sagaStepper) writeProposals(w int) {
	p.eachTodo(w, func(c int, me sagaWriter) {
		n, kind := p.s, sagaActWriteLost
		if claim := p.s.Claims[c]; me.Stale&(1<<c) == 0 && claim.Phase == claimPresent {
			p.delayWrite(w, sagaActWrite, c)
			kind = sagaActWrite
			n.Claims[c].Note = me.Command + 1
			n.Written |= 1 << me.Command
			n.touchNote(c, w)
		}
		if me.Todo == 0 {
			me = sagaWriter{}
		}
		p.next(kind, w, uint8(c), n, me, "")
	})
}

// eachTodo calls do for each claim that remains, with the writer without it.
func (p *sagaStepper) eachTodo(w int, do func(c int, me sagaWriter)) {
	for c := range p.s.Claims {
		if me := p.s.Writers[w]; me.Todo&(1<<c) != 0 {
			me.Todo &^= 1 << c
			do(c, me)
		}
	}
}

// reserveClaims writes the reservation of one claim after the other, and then reads the outbox. A claim that is confirmed counts
// already.
func (p *sagaStepper) reserveClaims(w int) {
	p.eachTodo(w, func(c int, me sagaWriter) {
		n, bit, claim := p.s, uint8(1)<<c, p.s.Claims[c]
		if me.Acting&bit == 0 {
			if me.Stale&bit != 0 || claim.Phase == claimRemoved {
				p.next(sagaActStop, w, uint8(c), n, sagaWriter{}, "")
				return
			}
			p.delayWrite(w, sagaActReserve, c)
			n.Claims[c].Reserved = true
			n.touchNote(c, w)
			me.Stale, me.Changed = me.Stale&^bit, me.Changed&^bit
		}
		if me.Todo == 0 {
			me.Step, me.Todo, me.OutboxStale = sagaCount, p.m.Commands[me.Command], false
			if p.m.Replaces && p.s.Outbox == outboxApplying {
				me = sagaWriter{}
			}
		}
		p.next(sagaActReserve, w, uint8(c), n, me, "")
	})
}

// countBudget lists all claims and counts the claims that are being disrupted.
func (p *sagaStepper) countBudget(w int) {
	me := p.s.Writers[w]
	going, isRebooting := 0, false
	for c, claim := range p.s.Claims {
		own := p.m.Commands[me.Command]&(1<<c) != 0
		isRebooting = isRebooting || own && claim.Reboot.Step != rebootNone
		if p.m.Bug == "reservations-not-counted" {
			claim.Reserved = false
		}
		if own || claim.counts() && p.m.Bug != "confirmed-nodes-not-counted" {
			going++
		}
	}
	if going > p.m.Budget || isRebooting {
		me.Step = p.m.firstUndo()
		if me.Todo = me.Acting; me.Todo == 0 {
			me = sagaWriter{}
		}
		p.next(sagaActReject, w, p.s.Writers[w].Command, p.s, me, "")
		return
	}
	me.Step = sagaConfirm
	if me.Todo &^= me.Acting; me.Todo == 0 {
		me.Step, me.Todo = p.m.afterConfirm(), p.m.Commands[me.Command]
	}
	p.next(sagaActCountBudget, w, me.Command, p.s, me, "")
}

// confirmClaims writes the confirmation on each claim.
func (p *sagaStepper) confirmClaims(w int) {
	p.eachTodo(w, func(c int, me sagaWriter) {
		n, bit := p.s, uint8(1)<<c
		kind, broken := sagaActConfirm, ""
		claim := &n.Claims[c]
		if me.Stale&bit == 0 && claim.Phase != claimRemoved {
			p.delayWrite(w, sagaActConfirm, c)
			claim.Confirmed, claim.Reserved = true, false
			n.Late &^= 1 << me.Command
			n.touchNote(c, w)
			broken = p.checkBudget(n)
		}
		isBegun := claim.isActing() && claim.Note == me.Command+1
		me.Stale, me.Changed = me.Stale&^bit, me.Changed&^bit
		switch {
		case !isBegun && p.m.Bug != "written-is-begun":
			kind, me = sagaActStop, sagaWriter{}
		case !isBegun:
			me.Unsure = true
			fallthrough
		default:
			me.Acting |= bit
			if me.Todo == 0 {
				me.Step, me.Todo = p.m.afterConfirm(), p.m.Commands[me.Command]
			}
		}
		p.next(kind, w, uint8(c), n, me, broken)
	})
}

// checkBudget counts the nodes that are disrupted.
func (p *sagaStepper) checkBudget(s sagaState) string {
	going := 0
	for _, claim := range s.Claims {
		if claim.Note != 0 && claim.Confirmed && claim.Phase != claimRemoved && !claim.Ends {
			going++
		}
	}
	if going > p.m.Budget {
		return "no disruption budget is exceeded"
	}
	return ""
}

// markClaims writes the condition of one claim, if it still carries a confirmed proposal.
func (p *sagaStepper) markClaims(w int) {
	p.eachTodo(w, func(c int, me sagaWriter) {
		n, claim, bit := p.s, p.s.Claims[c], uint8(1)<<c
		me.Stale, me.Changed = me.Stale&^bit, me.Changed&^bit
		if !claim.isActing() || claim.Note != me.Command+1 {
			if !me.IsConfirmation || p.m.Bug != "held-is-begun" {
				p.next(sagaActStop, w, uint8(c), n, sagaWriter{}, "")
				return
			}
			me.Unsure = true
		} else if !claim.Marked {
			p.delayWrite(w, sagaActMark, c)
			n.Claims[c].Marked = true
			n.touchClaim(c, w)
		}
		if me.At = uint8(c) + 1; claim.IsTainted || !claim.isActing() {
			me = p.afterTaint(me)
		} else {
			me.Step = sagaTaint
		}
		p.next(sagaActMark, w, uint8(c), n, me, "")
	})
}

// taintNode taints the node that was marked last.
func (p *sagaStepper) taintNode(w int) {
	n, me := p.s, p.s.Writers[w]
	c, broken := me.At-1, ""
	if n.Claims[c].Phase == claimPresent {
		p.delayWrite(w, sagaActTaint, int(c))
		n.Claims[c].IsTainted = true
		n.touchNode(int(c), w)
		if me.Unsure && p.m.Bug == "written-is-begun" {
			broken = "no node is tainted before all NodeClaims of its command are marked"
		}
	}
	p.next(sagaActTaint, w, c, n, p.afterTaint(me), broken)
}

// afterTaint returns the writer after one node is marked and tainted.
func (p *sagaStepper) afterTaint(me sagaWriter) sagaWriter {
	me.At = 0
	switch {
	case me.Todo != 0:
		me.Step = sagaMark
	case !me.IsConfirmation:
		me = sagaWriter{}
	case p.m.Replaces:
		me.Step = sagaSwap
	default:
		me.Step, me.Todo = sagaDelete, p.m.Commands[me.Command]
	}
	return me
}

// revokeCommand begins a rollback that keeps the proposal: the watcher has sent a batch since the outbox was read. The batch has
// its plan before anything else happens.
func (p *sagaStepper) revokeCommand(w int) {
	command := p.s.Writers[w].Command
	_, _, acting := p.readClaims(command)
	me := sagaWriter{Step: p.m.firstUndo(), Command: command, Todo: acting, Acting: acting, Revokes: true}
	if acting == 0 {
		me = sagaWriter{}
	}
	p.next(sagaActAdmitBatch, w, command, p.s, me, "")
}

// executePlan admits the replacement, creates it and finishes the plan.
func (p *sagaStepper) executePlan(w int) {
	n, me := p.s, p.s.Writers[w]
	command := me.Command
	if me.Step != sagaCreate && me.OutboxStale {
		p.next(sagaActAdmitLost, w, command, n, sagaWriter{}, "")
		return
	}
	if me.Step == sagaSwap {
		p.revokeCommand(w)
	}
	kind, broken := sagaActCreateReplacement, ""
	switch me.Step {
	case sagaSwap:
		if kind, me.Step = sagaActAdmit, sagaCreate; me.Unsure {
			broken = "replacements are launched only for a confirmed command"
		}
		n.Outbox, n.Plan = outboxApplying, command+1
		n.Admitted &^= 1 << command
		n.touchOutbox(w)
	case sagaCreate:
		if me.Step = sagaFinish; n.Replacements[command] == replacementNone {
			n.Replacements[command] = replacementCreated
		}
	default:
		kind, me = sagaActFinish, sagaWriter{}
		n.Outbox, n.Admitted = outboxDone, n.Admitted|1<<command
		n.touchOutbox(w)
	}
	p.next(kind, w, command, n, me, broken)
}
