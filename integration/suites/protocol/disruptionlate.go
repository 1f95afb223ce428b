package protocol

import "slices"

// delayWrite lets a replica get no answer to a write that would succeed now. The replica stops, as after an error.
func (p *sagaStepper) delayWrite(w int, kind uint8, c int) {
	if p.s.Flight.Kind != 0 || !slices.Contains(p.m.Late, kind) {
		return
	}
	n := p.s
	n.Flight = lateWrite{Kind: kind + 1, Claim: uint8(c), Command: p.s.Writers[w].Command}
	p.next(sagaActDelay, w, uint8(c), n, sagaWriter{}, "")
}

// landLateWrite executes the late write. It names the version of the object that its replica has read, and fails at any other.
func (p *sagaStepper) landLateWrite() {
	f, n := p.s.Flight, p.s
	if f.Kind == 0 {
		return
	}
	n.Flight = lateWrite{}
	before := p.s.Claims[f.Claim]
	claim, broken := &n.Claims[f.Claim], ""
	switch f.Kind - 1 {
	case sagaActWrite:
		claim.Note = f.Command + 1
		n.Written |= 1 << f.Command
	case sagaActReserve:
		claim.Reserved = true
	case sagaActConfirm:
		claim.Confirmed, claim.Reserved = true, false
		broken = p.checkBudget(n)
	case sagaActMark, sagaActUnmark:
		claim.Marked = f.Kind-1 == sagaActMark
	case sagaActTaint, sagaActUntaint:
		claim.IsTainted = f.Kind-1 == sagaActTaint
		n.touchNode(int(f.Claim), -1)
		p.add(sagaActLand, 0, f.Claim, n, "")
		return
	case sagaActUnpropose:
		claim.Note, claim.Confirmed, claim.Reserved = 0, false, false
	case sagaActDelete:
		claim.Phase = claimDeleting
		broken = p.checkDeletion(before, f.Command)
	}
	n.touchNote(int(f.Claim), -1)
	p.add(sagaActLand, 0, f.Claim, n, broken)
}

// forget removes what a replica no longer needs from its memory, so that states differ only in what matters.
func (w *sagaWriter) forget(m DisruptionModel) {
	own := w.Todo
	if w.IsConfirmation {
		own = m.Commands[w.Command]
	}
	isRollback := w.Step >= sagaUntaint
	switch {
	case isRollback:
		w.Stale, w.Acting, w.Changed = w.Stale&w.Todo, w.Acting&w.Todo, 0
	case w.Step <= sagaConfirm, w.Step == sagaEndProposal:
		w.Stale, w.Changed = w.Stale&own, 0
	default:
		w.Stale, w.Acting = 0, 0
	}
	if isCompared := w.Step == sagaDelete || w.Step == sagaVerifyReplacement || w.Step >= sagaRebootTaint && w.Step <= sagaRebootDelete; isCompared || w.IsConfirmation && !m.Replaces {
		w.Changed &= own
	} else {
		w.Changed = 0
	}
	if w.Step == sagaRebootTaint || w.Step == sagaRebootUntaint {
		w.NodeChanged &= own
	} else {
		w.NodeChanged = 0
	}
	if !m.Replaces {
		w.OutboxStale = false
	}
}
