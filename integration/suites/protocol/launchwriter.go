package protocol

import (
	"bytes"
	"unsafe"
)

// isLess orders values by their bytes. They must have no padding and no pointers.
func isLess[T any](a, b *T) bool {
	return bytes.Compare(unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a)), unsafe.Slice((*byte)(unsafe.Pointer(b)), unsafe.Sizeof(*b))) < 0 //nolint:gosec // see above
}

// stepWriter takes the next effect of a replica of lifecycle.
func (p *stepper) stepWriter(w int) {
	switch p.s.Writers[w].Step {
	case writerIdle:
		p.startPlan(w)
		p.startReconcile(w)
		p.startResult(w)
		p.startInventory(w)
	case writerCount:
		p.countClaims(w)
	case writerAdmit:
		p.admitPlan(w)
	case writerCreate:
		p.createClaims(w)
	case writerFinish:
		p.finishPlan(w)
	case writerList:
		p.listClaims(w)
	case writerMark:
		p.markClaims(w)
	case writerSend:
		p.sendRequests(w)
	case writerCompare:
		p.compareInventory(w)
	case writerBind:
		p.bindInstances(w)
	}
}

// next adds a step after which writer w is as given.
func (p *stepper) next(kind uint8, w int, what uint8, n launchState, writer modelWriter, broken string) {
	n.Writers[w] = writer
	p.add(kind, uint8(w), what, n, broken)
}

// startPlan reads the outbox for a plan. The planner answers a batch as often as it is delivered.
func (p *stepper) startPlan(w int) {
	s := p.s
	for i := range p.m.Plans {
		plan := uint8(i)
		if s.Sequence != p.m.Batches[i] {
			continue
		}
		switch {
		case s.Outbox == outboxSent:
			p.next(actReadPlan, w, plan, s, modelWriter{Step: writerCount, Plan: plan}, "")
		case s.Outbox == outboxApplying && s.Plan == plan:
			p.next(actReadPlan, w, plan, s, modelWriter{Step: writerCreate, Plan: plan, List: s.List}, "")
		}
	}
}

// countView is what a writer sees when it counts: the claims that exist (counts), the claims that may be launched (whole), the claims of an
// abandoned plan (abandoned), and the claims of an abandoned plan whose UID in the view is the UID of the existing claim (recorded).
type countView struct {
	counts, whole, abandoned, recorded uint8
}

// countViews returns what a writer may count. A writer that does not know the claims of the plans before lists the API
// server. Any other one counts its cache, which may show any earlier state and lack claims that are not known to the writer.
func (p *stepper) countViews(w int, plan uint8) []countView { //nolint:gocyclo // one rule of the protocol, which is read in one piece
	s, known := p.s, p.s.Counted[w]
	lags := known.Batch == p.m.Batches[plan]
	switch p.m.Bug {
	case "new-leader-counts-its-cache":
		lags = true
	case "other-plans-not-counted":
		lags = known.Batch != 0
	}
	views := []countView{{}}
	for c, claim := range s.Claims {
		bit := uint8(1) << c
		exists := claim.Phase == claimPresent || claim.Phase == claimDeleting
		live := countView{}
		if exists {
			live.counts = bit
		}
		if claim.Phase == claimPresent || claim.Phase == claimDeleting && claim.Admitted {
			live.whole = bit
		}
		if claim.Phase == claimPresent && !claim.Admitted {
			live.abandoned, live.recorded = bit, bit
		}
		options := []countView{live}
		if lags && claim.Phase != claimNone && p.m.claimsOf(plan)&bit == 0 {
			before := countView{counts: bit, whole: bit, abandoned: bit}
			if exists {
				same := before
				same.recorded = bit
				options = append(options, same)
			}
			if known.Claims&bit == 0 {
				options = append(options, before)
			}
			if known.Claims&bit == 0 && exists {
				options = append(options, countView{})
			}
		}
		var next []countView
		for _, v := range views {
			for _, o := range options {
				next = append(next, countView{v.counts | o.counts, v.whole | o.whole, v.abandoned | o.abandoned, v.recorded | o.recorded})
			}
		}
		views = next
	}
	return views
}

// countClaims decides which claims are admitted: whole intents within the limit, and claims that an abandoned
// plan has left behind if all claims of their intent exist.
func (p *stepper) countClaims(w int) {
	for _, v := range p.countViews(w, p.s.Writers[w].Plan) {
		s, me := p.s, p.s.Writers[w]
		if s.Counted[w].Batch != p.m.Batches[me.Plan] {
			s.Counted[w] = countedClaims{Batch: p.m.Batches[me.Plan], Claims: v.counts}
		}
		if p.m.Bug == "outbox-read-after-count" {
			me.OutboxStale = false
		}
		me.List, me.Created = p.admitIntents(me, v)
		me.Step = writerAdmit
		p.next(actCount, w, 0, s, me, "")
	}
}

// admitIntents returns the claims that are admitted, and those of them whose UIDs are known.
func (p *stepper) admitIntents(me modelWriter, v countView) (list, recorded uint8) {
	planned, used := p.m.claimsOf(me.Plan), countBits(v.counts)
	recorded = me.Created
	for c := range uint8(claimCount) {
		whole := p.m.claimsOfIntent(p.m.IntentOf[c])&^v.whole == 0 || p.m.Bug == "part-of-an-intent"
		fits := used <= p.m.Limit || p.m.Bug == "abandoned-beyond-limits"
		if bit := uint8(1) << c; v.abandoned&^planned&bit != 0 && whole && fits {
			list |= bit
			recorded |= v.recorded & bit
		}
	}
	for intent := range p.m.intents() {
		claims := p.m.claimsOfIntent(intent) & planned
		fresh := countBits(claims &^ v.counts)
		if claims != 0 && (used+fresh <= p.m.Limit || p.m.Bug == "strict-limits-are-not") {
			list |= claims
			used += fresh
		}
	}
	return list, recorded
}

// countPresent reports whether all claims of an intent exist and may be launched.
func (p *stepper) countPresent(intent uint8) bool {
	for c, claim := range p.s.Claims {
		if p.m.IntentOf[c] == intent && claim.Phase != claimPresent && (claim.Phase != claimDeleting || !claim.Admitted) {
			return p.m.Bug == "part-of-an-intent"
		}
	}
	return true
}

func (p *stepper) admitPlan(w int) {
	s, me := p.s, p.s.Writers[w]
	if me.OutboxStale && p.m.Bug != "fence-removed" && p.m.Bug != "outbox-read-after-count" || p.m.Bug == "outbox-read-after-count" && (s.Outbox != outboxSent || s.Sequence != p.m.Batches[me.Plan]) {
		p.next(actAdmitLost, w, 0, s, modelWriter{}, "")
		return
	}
	n, broken := s, p.checkSequence(me)
	n.Outbox, n.Sequence, n.Plan, n.List = outboxApplying, p.m.Batches[me.Plan], me.Plan, me.List
	n.Recorded = me.Created
	n.touchOutbox(w)
	p.next(actAdmit, w, 0, n, modelWriter{Step: writerCreate, Plan: me.Plan, List: me.List}, broken)
}

func (p *stepper) checkSequence(me modelWriter) string {
	if p.m.Batches[me.Plan] < p.s.Sequence {
		return "the outbox sequence never decreases"
	}
	return ""
}

// createClaims creates the claims that the outbox listed when it was read. A claim that exists stays.
func (p *stepper) createClaims(w int) {
	s, me := p.s, p.s.Writers[w]
	if p.m.Bug == "claims-after-launch" {
		for intent := range p.m.intents() {
			if claims := p.m.claimsOfIntent(intent); me.List&claims == claims && s.Requests&(1<<intent) == 0 {
				n := s
				n.Requests |= 1 << intent
				p.next(actRequest, w, intent, n, me, "")
			}
		}
	}
	todo := me.List & p.m.claimsOf(me.Plan)
	if me.Views[0] == 0 {
		me.Views[0] = todo + 1 // the claims that remain, plus one
	}
	todo = me.Views[0] - 1
	for c := range uint8(claimCount) {
		if todo&(1<<c) == 0 {
			continue
		}
		n, mine := s, me
		mine.Views[0] = todo&^(1<<c) + 1
		mine.Created |= 1 << c
		if phase := s.Claims[c].Phase; phase == claimNone || phase == claimRemoved {
			n.Claims[c] = modelClaim{Phase: claimPresent}
			n.Late &^= 1 << c
			n.Recorded &^= 1 << c
			for other := range n.Writers {
				n.Writers[other].forgetClaim(c)
				n.Counted[other].Claims &^= 1 << c
			}
			n.touchClaim(int(c), w)
		}
		if mine.Views[0] == 1 {
			mine.Views[0], mine.Step = 0, writerFinish
		}
		p.next(actCreate, w, c, n, mine, "")
	}
	if todo == 0 {
		me.Views[0], me.Step = 0, writerFinish
		p.finishFrom(w, s, me)
	}
}

// forgetClaim removes what a writer knows about a claim that was created again, under the same name.
func (w *modelWriter) forgetClaim(c uint8) {
	w.Absences &^= 1 << c
	w.Lates &^= 1 << c
	w.Created &^= 1 << c
	if w.Step == writerList {
		w.List &^= 1 << c
	}
}

func (p *stepper) finishPlan(w int) { p.finishFrom(w, p.s, p.s.Writers[w]) }

func (p *stepper) finishFrom(w int, s launchState, me modelWriter) {
	if me.OutboxStale && p.m.Bug != "fence-removed" {
		p.next(actAdmitLost, w, 0, s, modelWriter{}, "")
		return
	}
	n, broken := s, p.checkSequence(me)
	n.Outbox, n.Sequence, n.Plan, n.List = outboxDone, p.m.Batches[me.Plan], me.Plan, me.List
	planned := p.m.claimsOf(me.Plan)
	n.Recorded = me.List & (me.Created&planned | s.Recorded&^planned)
	if known := &n.Counted[w]; known.Batch == n.Sequence && (me.List&^planned == 0 || p.m.Bug == "abandoned-not-counted") {
		known.Batch++
		if p.m.Bug != "created-not-counted" {
			known.Claims |= me.Created & planned
		}
	}
	n.touchOutbox(w)
	p.next(actFinish, w, 0, n, modelWriter{}, broken)
}

// startReconcile reads the outbox; the claims are listed later.
func (p *stepper) startReconcile(w int) {
	if p.s.Outbox == outboxDone {
		list := p.s.List & p.s.Recorded
		if p.m.Bug == "created-again" {
			list = p.s.List
		}
		p.next(actReadOutbox, w, 0, p.s, modelWriter{Step: writerList, List: list, Done: true}, "")
	}
}

// listClaims decides what to do with each claim: mark it as admitted, delete it because its intent is incomplete
// or its plan abandoned, or request its launch.
func (p *stepper) listClaims(w int) { //nolint:gocyclo // one rule of the protocol, which is read in one piece
	s, me := p.s, p.s.Writers[w]
	me.Stale, me.Step = 0, writerMark
	work := false
	for c, claim := range s.Claims {
		me.Views[c] = viewOther
		switch {
		case claim.Phase == claimPresent && !claim.Admitted && me.List&(1<<c) == 0,
			claim.Phase == claimPresent && !claim.Admitted && !p.countPresent(p.m.IntentOf[c]):
			me.Views[c], work = viewDelete, true
		case claim.Phase == claimPresent && !claim.Admitted:
			me.Views[c], work = viewMark, true
		case claim.Phase == claimPresent && claim.Bound == noInstance && !claim.Spent && s.Late&(1<<c) == 0:
			me.Views[c], work = viewLaunch, true
		case claim.Phase == claimPresent || claim.Phase == claimDeleting && claim.Admitted:
			me.Views[c] = viewCounts
		}
	}
	if !work {
		me = modelWriter{}
	} else {
		me = p.readyToSend(me)
	}
	p.next(actList, w, 0, s, me, "")
}

// readyToSend moves a writer that has no claim to write to its requests.
func (p *stepper) readyToSend(me modelWriter) modelWriter { //nolint:gocyclo // one rule of the protocol, which is read in one piece
	for _, view := range me.Views {
		if view == viewMark || view == viewDelete {
			return me
		}
	}
	sends := uint8(0)
	for intent := range p.m.intents() {
		complete, launches := true, false
		for c, view := range me.Views {
			if p.m.IntentOf[c] == intent {
				complete = complete && (view == viewLaunch || view == viewCounts)
				launches = launches || view == viewLaunch && p.s.Late&(1<<c) == 0
			}
		}
		if launches && (complete || p.m.Bug == "part-of-an-intent") && p.s.Requests&(1<<intent) == 0 {
			sends |= 1 << intent
		}
	}
	if sends == 0 {
		return modelWriter{}
	}
	return modelWriter{Step: writerSend, Sends: sends}
}

// markClaims writes one claim, if it is as it was read.
func (p *stepper) markClaims(w int) {
	for c := range uint8(claimCount) {
		s, me := p.s, p.s.Writers[w]
		view := me.Views[c]
		if view != viewMark && view != viewDelete {
			continue
		}
		kind, n, broken := actMark, s, ""
		claim := s.Claims[c]
		byUID := p.m.Bug == "given-up-by-uid" && view == viewDelete && claim.Phase == claimPresent
		if me.Stale&(1<<c) != 0 && !byUID {
			kind, me.Views[c] = actMarkLost, viewOther
		} else {
			if me.Views[c] = viewLaunch; view == viewDelete {
				me.Views[c], n.Claims[c].Phase = viewOther, claimDeleting
				if claim.Admitted {
					broken = "an admitted NodeClaim is not deleted as abandoned"
				}
			} else {
				n.Claims[c].Admitted = true
			}
			n.touchClaim(int(c), w)
		}
		p.next(kind, w, c, n, p.readyToSend(me), broken)
	}
}

// sendRequests requests the launch of one intent after the other.
func (p *stepper) sendRequests(w int) {
	for intent := range p.m.intents() {
		n, me := p.s, p.s.Writers[w]
		if me.Sends&(1<<intent) == 0 {
			continue
		}
		n.Requests |= 1 << intent
		if me.Sends &^= 1 << intent; me.Sends == 0 {
			me = modelWriter{}
		}
		p.next(actRequest, w, intent, n, me, "")
	}
}
