package protocol

// startReconcile continues the command of one claim, or removes the marks of one that has none.
func (p *sagaStepper) startReconcile(w int) {
	for c, claim := range p.s.Claims {
		me := sagaWriter{Todo: 1 << c}
		switch {
		case claim.Phase != claimPresent:
		case claim.isActing() && p.m.Reboots:
			me.Command, me.Step = claim.Note-1, sagaStartReboot
			p.next(sagaActReconcile, w, uint8(c), p.s, me, "")
		case claim.isActing():
			me.Command, me.Acting = claim.Note-1, 1<<c
			p.continueCommand(w, c, me)
		case claim.Reboot.Step != rebootNone:
			p.continueReboot(w, c)
		case claim.Marked || claim.IsTainted && p.m.Bug != "taint-not-looked-for":
			me.Step = p.m.firstUndo()
			p.next(sagaActReconcile, w, uint8(c), p.s, me, "")
		}
	}
}

// continueCommand reads the replacement of a claim and decides whether the command ends, waits or is undone.
func (p *sagaStepper) continueCommand(w, c int, me sagaWriter) {
	isReady, isFailed, mayTimeOut := p.assessReplacement(me.Command)
	take := func(step uint8) {
		me.Step = step
		p.next(sagaActReconcile, w, uint8(c), p.s, me, "")
	}
	switch {
	case isReady:
		take(sagaVerify)
	case isFailed && p.m.Bug == "failed-but-not-undone":
	case isFailed:
		take(p.m.firstUndo())
	default:
		if claim := p.s.Claims[c]; !claim.Marked || !claim.IsTainted {
			take(sagaMark)
		}
		if mayTimeOut {
			take(p.m.firstUndo())
		}
	}
}

// assessReplacement returns the progress of a command. A replacement that is not initialized may time out at any moment.
func (p *sagaStepper) assessReplacement(command uint8) (isReady, isFailed, mayTimeOut bool) {
	if !p.m.Replaces {
		return true, false, false
	}
	switch p.s.Replacements[command] {
	case replacementInitialized:
		return true, false, false
	case replacementCreated:
		return p.m.Bug == "drained-before-replaced", false, p.m.Bug != "failed-but-not-undone"
	case replacementDeleting:
		return false, true, false
	}
	mayBeCreated := p.s.Late&(1<<command) == 0
	if p.s.Plan == command+1 {
		mayBeCreated = p.s.Outbox == outboxApplying
	}
	return false, !mayBeCreated, false
}

// verifyReplacement reads the claim and then its replacement from the API server.
func (p *sagaStepper) verifyReplacement(w int) {
	me := p.s.Writers[w]
	c := p.firstTodo(me)
	if me.Step == sagaVerify {
		claim := p.s.Claims[c]
		me.Step, me.Changed, me.Stale = sagaVerifyReplacement, 0, 0
		if !claim.isActing() || claim.Note != me.Command+1 {
			me = sagaWriter{}
		}
		p.next(sagaActVerify, w, c, p.s, me, "")
		return
	}
	isReady, _, _ := p.assessReplacement(me.Command)
	command := me.Command
	switch {
	case isReady:
		me.Step = sagaDelete
	case p.m.Bug == "end-by-the-cache":
		me.Step, me.Unready = sagaDelete, true
	default:
		me = sagaWriter{}
	}
	p.next(sagaActVerifyReplacement, w, command, p.s, me, "")
}

// deleteClaims deletes each claim, if it is as it was read.
func (p *sagaStepper) deleteClaims(w int) {
	p.eachTodo(w, func(c int, me sagaWriter) {
		n, kind, broken := p.s, sagaActDeleteLost, ""
		claim := p.s.Claims[c]
		if claim.Phase == claimPresent && (me.Changed&(1<<c) == 0 || p.m.Bug == "deleted-unread") {
			p.delayWrite(w, sagaActDelete, c)
			kind = sagaActDelete
			n.Claims[c].Phase = claimDeleting
			n.touchClaim(c, w)
			if broken = p.checkDeletion(claim, me.Command); broken == "" && me.Unready {
				broken = "no node is drained for a replacement that is being deleted"
			}
		}
		if me.Todo == 0 {
			me = sagaWriter{}
		}
		p.next(kind, w, uint8(c), n, me, broken)
	})
}

// checkDeletion returns the promise that the deletion of a claim for a command breaks.
func (p *sagaStepper) checkDeletion(claim sagaClaim, command uint8) string {
	switch {
	case !claim.isActing():
		return "no node is drained for a command that is undone"
	case p.m.Replaces && p.s.EverReady&(1<<command) == 0:
		return "no node is drained before its replacement is ready"
	}
	return ""
}

// rollBack removes the taint, the condition and the proposal of one claim after the other, in this order, so that after a
// crash the proposal is still there. A rollback that revokes leaves it there, unconfirmed.
func (p *sagaStepper) rollBack(w int) {
	me := p.s.Writers[w]
	c := p.firstTodo(me)
	n, bit := p.s, uint8(1)<<c
	claim := &n.Claims[c]
	isGone := claim.Phase == claimRemoved
	switch me.Step {
	case sagaUntaint:
		if me.Step = sagaUnmark; !isGone && !claim.Ends && claim.IsTainted {
			p.delayWrite(w, sagaActUntaint, int(c))
			n.touchNode(int(c), w)
			claim.IsTainted = claim.Phase == claimDeleting && claim.IsTainted
		}
		p.next(sagaActUntaint, w, c, n, me, "")
	case sagaUnmark:
		if me.Step = sagaUnpropose; claim.Marked {
			p.delayWrite(w, sagaActUnmark, int(c))
			// The write reads the claim again if it has changed.
			claim.Marked = false
			n.touchClaim(int(c), w)
			me.Stale &^= bit
			if me.Acting &^= bit; claim.isActing() {
				me.Acting |= bit
			}
		}
		p.next(sagaActUnmark, w, c, n, me, "")
	default:
		kind := sagaActUnpropose
		if me.Revokes {
			kind = sagaActRevoke
		}
		if me.Acting&bit != 0 && me.Stale&bit == 0 && !isGone {
			p.delayWrite(w, kind, int(c))
			claim.Confirmed, claim.Reserved = false, false
			if !me.Revokes {
				claim.Note = 0
			}
			n.touchNote(int(c), w)
		}
		me.Step, me.Todo = p.m.firstUndo(), me.Todo&^bit
		if me.Todo == 0 {
			me = sagaWriter{}
		}
		p.next(kind, w, c, n, me, "")
	}
}
