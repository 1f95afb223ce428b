package protocol

// startResult receives the result of a launch and reads the claims of its intent.
func (p *stepper) startResult(w int) {
	s := p.s
	for intent := range p.m.intents() {
		if s.Tokens[intent] == tokenUnused {
			continue
		}
		if s.Tokens[intent] == tokenRefused {
			p.refuseClaims(intent)
			continue
		}
		var found uint8
		for _, slot := range p.m.slotsOf(intent) {
			if s.Instances[slot] != instanceNone {
				found |= 1 << slot
			}
		}
		if me := p.matchInstances(found); me.Step != writerIdle {
			p.next(actAnswer, w, intent, s, me, "")
		}
	}
}

// refuseClaims marks the claims of a refused intent, each by a swap; the next reconcile deletes them.
func (p *stepper) refuseClaims(intent uint8) {
	for c, claim := range p.s.Claims {
		if p.m.IntentOf[c] == intent && claim.Bound == noInstance && !claim.Spent && claim.Admitted && (claim.Phase == claimPresent || claim.Phase == claimDeleting) {
			n := p.s
			n.Claims[c].Spent, n.Claims[c].Phase = true, claimDeleting
			n.touchClaim(c, -1)
			p.add(actAnswer, 0, intent, n, "")
		}
	}
}

// matchInstances assigns instances to the claims of their intent without one, in the order of their numbers, and
// to a claim that is being deleted only if there is no other. A claim that is not admitted was created again by a
// writer that had paused; it has no instance. The others are orphans.
func (p *stepper) matchInstances(found uint8) modelWriter { //nolint:gocyclo // one rule of the protocol, which is read in one piece
	s, me := p.s, modelWriter{}
	for slot := range uint8(instanceCount) {
		if found&(1<<slot) == 0 || p.isBound(slot) {
			continue
		}
		free := -1
		for c, claim := range s.Claims {
			exists := (claim.Phase == claimPresent || claim.Phase == claimDeleting) && (claim.Admitted || p.m.Bug == "bind-unadmitted")
			isFree := claim.Bound == noInstance || p.m.Bug == "slot-order"
			if !exists || p.m.IntentOf[c] != p.m.intentOfInstance(slot) || me.Match[c] != noInstance || !isFree || claim.Gone {
				continue
			}
			if free < 0 || s.Claims[free].Phase == claimDeleting && claim.Phase == claimPresent {
				free = c
			}
		}
		switch {
		case free >= 0:
			me.Match[free], me.Step = slot+1, writerBind
		case isRunning(s.Instances[slot]):
			me.Orphans |= 1 << slot
			me.Step = writerBind
		}
	}
	return me
}

func (p *stepper) isBound(slot uint8) bool {
	for _, c := range p.s.Claims {
		if c.Bound == slot+1 && (c.Phase == claimPresent || c.Phase == claimDeleting) {
			return true
		}
	}
	return false
}

// startInventory describes the instances. A description may lack a fresh instance, but not twice at least 30 s
// apart (garbagecollection.InventoryGap).
func (p *stepper) startInventory(w int) {
	var shown, fresh, absences uint8
	for slot, instance := range p.s.Instances {
		if instance == instanceVisible {
			shown |= 1 << slot
		}
		if instance == instanceFresh {
			fresh |= 1 << slot
		}
	}
	for c, claim := range p.s.Claims {
		if claim.Absent {
			absences |= 1 << c
			for slot := range uint8(instanceCount) {
				if fresh&(1<<slot) != 0 && p.m.intentOfInstance(slot) == p.m.IntentOf[c] {
					shown, fresh = shown|1<<slot, fresh&^(1<<slot)
				}
			}
		}
	}
	for some := fresh; ; some = (some - 1) & fresh {
		p.next(actInventory, w, 0, p.s, modelWriter{Step: writerCompare, Listed: shown | some, Absences: absences, Lates: p.s.Late}, "")
		if some == 0 {
			return
		}
	}
}

// compareInventory reads the claims after the inventory and compares both.
func (p *stepper) compareInventory(w int) {
	s, before := p.s, p.s.Writers[w]
	me := p.matchInstances(before.Listed)
	for c, claim := range s.Claims {
		if claim.Phase != claimDeleting || claim.Bound != noInstance || !claim.Admitted || before.Lates&(1<<c) == 0 || claim.Gone || p.showsIntent(before.Listed, p.m.IntentOf[c]) {
			continue
		}
		switch {
		case before.Absences&(1<<c) != 0 || p.m.Bug == "absence-as-death":
			me.Gone |= 1 << c
			me.Step = writerBind
		case !claim.Absent:
			me.Missing |= 1 << c
			me.Step = writerBind
		}
	}
	if p.m.Bug == "no-list-is-empty" {
		me.Orphans |= before.Listed
		me.Step = writerBind
	}
	if me.Orphans|me.Gone|me.Missing|me.Match[0]|me.Match[1] == 0 {
		me = modelWriter{}
	}
	p.next(actCompare, w, 0, s, me, "")
}

// showsIntent reports whether the inventory has an unbound instance of the intent.
func (p *stepper) showsIntent(listed, intent uint8) bool {
	for slot := range uint8(instanceCount) {
		if listed&(1<<slot) != 0 && p.m.intentOfInstance(slot) == intent && !p.isBound(slot) {
			return true
		}
	}
	return false
}

// bindInstances writes one match, orphan or mark. Binds are taken in the order of the instances, and the first
// that is lost ends them.
func (p *stepper) bindInstances(w int) {
	me := p.s.Writers[w]
	first := p.firstMatch(me)
	for c := range uint8(claimCount) {
		bit := uint8(1) << c
		if me.Match[c] != noInstance && (int(c) == first || p.m.Bug == "bind-in-parallel") {
			p.bindInstance(w, c)
		}
		if first >= 0 {
			continue
		}
		p.markClaim(actAbsent, w, c, me.Missing&bit != 0, func(k *modelClaim) { k.Absent = true })
		p.markClaim(actGone, w, c, me.Gone&bit != 0, func(k *modelClaim) { k.Gone, k.Phase = true, claimDeleting })
	}
	if first >= 0 {
		return
	}
	for slot := range uint8(instanceCount) {
		if me.Orphans&(1<<slot) == 0 {
			continue
		}
		n, mine := p.s, me
		mine.Orphans &^= 1 << slot
		// The claims are listed once more before an orphan is terminated.
		if !p.isBound(slot) || p.m.Bug == "no-list-is-empty" {
			n.Terminations |= 1 << slot
		}
		p.next(actOrphan, w, slot, n, endIfDone(mine), "")
	}
}

// firstMatch returns the claim that the first instance is bound to, or -1.
func (p *stepper) firstMatch(me modelWriter) int {
	first := -1
	for c, slot := range me.Match {
		if slot != noInstance && (first < 0 || slot < me.Match[first]) {
			first = c
		}
	}
	return first
}

func (p *stepper) bindInstance(w int, c uint8) {
	n, me := p.s, p.s.Writers[w]
	kind := actBind
	if me.Stale&(1<<c) != 0 {
		kind = actBindLost
		if me.Match[c] = noInstance; p.m.Bug != "bind-in-parallel" {
			me.Match = [claimCount]uint8{}
		}
	} else {
		n.Claims[c].Bound = me.Match[c]
		n.touchClaim(int(c), w)
		me.Match[c] = noInstance
	}
	p.next(kind, w, c, n, endIfDone(me), p.checkRebound(c, kind))
}

func (p *stepper) checkRebound(c, kind uint8) string {
	if kind == actBind && p.s.Claims[c].Bound != noInstance {
		return "a NodeClaim is bound once"
	}
	return ""
}

// markClaim writes a mark on a claim if the writer plans that.
func (p *stepper) markClaim(kind uint8, w int, c uint8, planned bool, edit func(*modelClaim)) {
	if !planned {
		return
	}
	n, me := p.s, p.s.Writers[w]
	me.Missing &^= 1 << c
	me.Gone &^= 1 << c
	if me.Stale&(1<<c) == 0 {
		edit(&n.Claims[c])
		n.touchClaim(int(c), w)
	} else {
		kind = actMarkLost
	}
	p.next(kind, w, c, n, endIfDone(me), "")
}

// endIfDone returns an idle writer if nothing remains to be written.
func endIfDone(me modelWriter) modelWriter {
	if me.Orphans|me.Gone|me.Missing|me.Match[0]|me.Match[1] == 0 {
		return modelWriter{}
	}
	return me
}
