package protocol

// Steps of a reboot.
const (
	rebootNone uint8 = iota
	rebootRequested
	rebootIssued
)

// sagaReboot is the reboot of a candidate's node.
type sagaReboot struct {
	// Step is the reason of the condition Rebooting. IsTainted is whether the node has the taint of reboots.
	Step      uint8
	IsTainted bool
	// IsRecorded is whether the boot ID is recorded, and HasBooted whether EC2 has rebooted the instance since.
	IsRecorded, HasBooted bool
	// IsRequested is whether a request is valid that the launcher may execute, any number of times.
	IsRequested bool
	// IsFailed is whether the NodeClaim is about to be deleted, because the reboot has failed.
	IsFailed bool
}

// startReboot requests the reboot of a confirmed proposal: it sets the conditions, and then removes the proposal.
func (p *sagaStepper) startReboot(w int) {
	me := p.s.Writers[w]
	c := p.firstTodo(me)
	n, claim := p.s, &p.s.Claims[c]
	if me.Step == sagaEndProposal {
		if me.Stale&(1<<c) == 0 && claim.Phase != claimRemoved {
			n.Claims[c].Note, n.Claims[c].Confirmed = 0, false
			n.touchNote(int(c), w)
		}
		p.next(sagaActUnpropose, w, c, n, sagaWriter{}, "")
		return
	}
	me.Step, me.Stale = sagaEndProposal, 0
	switch {
	case !claim.isActing():
		me = sagaWriter{}
	case claim.Reboot.Step == rebootNone:
		n.Claims[c].Marked, n.Claims[c].Reboot = true, sagaReboot{Step: rebootRequested, IsTainted: claim.Reboot.IsTainted}
		n.touchClaim(int(c), w)
	}
	p.next(sagaActStartReboot, w, c, n, me, "")
}

// continueReboot reads a NodeClaim that is being rebooted, and its node, and decides the next step. A reboot may fail at any time;
// then its NodeClaim is deleted.
func (p *sagaStepper) continueReboot(w, c int) {
	r := p.s.Claims[c].Reboot
	take := func(step uint8) {
		p.next(sagaActReconcile, w, uint8(c), p.s, sagaWriter{Step: step, Todo: 1 << c}, "")
	}
	switch {
	case r.IsFailed, p.m.Bug == "failed-reboot-deleted-unread":
		take(sagaRebootDelete)
	default:
		take(sagaRebootFail)
	}
	switch {
	case r.IsFailed:
	case r.Step == rebootRequested && r.HasBooted:
		take(sagaRebootIssue)
	case r.Step == rebootRequested && !r.IsTainted:
		take(sagaRebootTaint)
	case r.Step == rebootRequested && !r.IsRecorded:
		take(sagaRebootRecord)
	case r.Step == rebootRequested:
		take(sagaRebootSend)
	case r.IsTainted && r.HasBooted && !p.mayReboot(c):
		take(sagaRebootUntaint)
	case !r.IsTainted:
		take(sagaRebootEnd)
	}
}

// mayReboot reports whether a request may still be executed. One that is not sent yet counts, because it is sent soon after its
// decision or not at all, and the taint stays for longer.
func (p *sagaStepper) mayReboot(c int) bool {
	for _, me := range p.s.Writers {
		if me.Step == sagaRebootSend && me.Todo == 1<<c && p.m.Bug != "reboot-requested-late" {
			return true
		}
	}
	return p.s.Claims[c].Reboot.IsRequested
}

// takeRebootStep executes what continueReboot has decided. Writes fail if their object has changed.
func (p *sagaStepper) takeRebootStep(w int) {
	me := p.s.Writers[w]
	c := p.firstTodo(me)
	n, r := p.s, p.s.Claims[c].Reboot
	isSame := me.Changed&(1<<c) == 0 && p.s.Claims[c].Phase == claimPresent
	kind := map[uint8]uint8{
		sagaRebootTaint: sagaActRebootTaint, sagaRebootRecord: sagaActRebootRecord, sagaRebootSend: sagaActRebootSend, sagaRebootIssue: sagaActRebootIssue,
		sagaRebootUntaint: sagaActRebootUntaint, sagaRebootEnd: sagaActRebootEnd, sagaRebootFail: sagaActRebootFail, sagaRebootDelete: sagaActRebootDelete,
	}[me.Step]
	broken := ""
	next := &n.Claims[c].Reboot
	switch me.Step {
	case sagaRebootTaint, sagaRebootUntaint:
		if n.Claims[c].Phase == claimPresent && me.NodeChanged&(1<<c) == 0 {
			next.IsTainted = me.Step == sagaRebootTaint
			n.touchNode(int(c), w)
		}
	case sagaRebootSend:
		next.IsRequested = n.Claims[c].Phase != claimRemoved
	case sagaRebootDelete:
		if isSame || p.m.Bug == "failed-reboot-deleted-unread" && n.Claims[c].Phase == claimPresent {
			n.Claims[c].Phase = claimDeleting
			n.touchClaim(int(c), w)
			if r.Step == rebootNone {
				broken = "no node is drained for a reboot that has ended"
			}
		}
	default:
		if isSame {
			n.touchClaim(int(c), w)
			next.write(me.Step)
		}
	}
	p.next(kind, w, c, n, sagaWriter{}, broken)
}

// write changes the reboot as a step that updates the NodeClaim does.
func (r *sagaReboot) write(step uint8) {
	switch step {
	case sagaRebootRecord:
		r.IsRecorded = true
	case sagaRebootIssue:
		r.Step = rebootIssued
	case sagaRebootFail:
		r.IsFailed = true
	case sagaRebootEnd:
		*r = sagaReboot{IsTainted: r.IsTainted, IsRequested: r.IsRequested}
	}
}

// stepReboot lets EC2 execute a valid request, and lets it expire.
func (p *sagaStepper) stepReboot(c int) {
	claim := p.s.Claims[c]
	if !claim.Reboot.IsRequested {
		return
	}
	n, broken := p.s, ""
	if n.Claims[c].Reboot.HasBooted = true; claim.Phase == claimPresent && !claim.Reboot.IsTainted {
		broken = "a node that is rebooted accepts no pods"
	}
	n.touchNode(c, -1)
	p.add(sagaActReboots, 0, uint8(c), n, broken)
	n = p.s
	n.Claims[c].Reboot.IsRequested = false
	p.add(sagaActRebootExpires, 0, uint8(c), n, "")
}

// firstTodo returns the first claim that remains.
func (p *sagaStepper) firstTodo(me sagaWriter) uint8 {
	c := uint8(0)
	for me.Todo&(1<<c) == 0 {
		c++
	}
	return c
}
