package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// Kinds of actions of the launch protocol.
const (
	actBatch uint8 = iota
	actClose
	actReadPlan
	actCount
	actAdmit
	actAdmitLost
	actCreate
	actFinish
	actReadOutbox
	actList
	actMark
	actMarkLost
	actRequest
	actExpire
	actLaunch
	actRefuse
	actDeny
	actAnswer
	actInventory
	actCompare
	actBind
	actBindLost
	actOrphan
	actAbsent
	actGone
	actTerminate
	actEnd
	actGoneNotice
	actRemove
	actTimeout
	actHorizon
	actVisible
	actDelete
	actCrash
)

// launchSentences are the sentences of actions. %[1]s is the writer, %[2]d the number of the plan, claim, intent
// or instance.
var launchSentences = map[uint8]string{
	actBatch: "The watcher swaps the outbox to sent with the next batch.", actClose: "The watcher gives up the batch and closes it.",
	actReadPlan: "%[1]s receives plan %[2]d and reads the outbox.", actCount: "%[1]s counts the NodeClaims against the limits.",
	actAdmit: "%[1]s swaps the outbox to applying.", actAdmitLost: "%[1]s loses the swap of the outbox, because it has changed.",
	actCreate: "%[1]s creates NodeClaim %[2]d.", actFinish: "%[1]s swaps the outbox to done.",
	actReadOutbox: "%[1]s reconciles and reads the outbox.", actList: "%[1]s lists the NodeClaims.",
	actMark: "%[1]s marks NodeClaim %[2]d as admitted, or deletes it because its intent is incomplete or its plan abandoned.", actMarkLost: "%[1]s loses the write of NodeClaim %[2]d, which has changed.",
	actRequest: "%[1]s requests the launch of intent %[2]d.", actExpire: "The request for intent %[2]d is lost or expires.",
	actLaunch: "EC2 launches intent %[2]d for the launcher; the launcher may crash before it publishes the result.", actRefuse: "EC2 refuses intent %[2]d and stores that under the token.",
	actDeny:      "EC2 denies the launch of intent %[2]d without using the token, and a writer deletes its NodeClaims.",
	actAnswer:    "%[1]s receives the result of intent %[2]d and reads its NodeClaims.",
	actInventory: "An inventory begins; %[1]s will receive it.", actCompare: "%[1]s lists the NodeClaims to compare them with the inventory.",
	actBind: "%[1]s binds the matched instance to NodeClaim %[2]d.", actBindLost: "%[1]s loses the bind of NodeClaim %[2]d, which has changed.",
	actOrphan: "%[1]s requests the termination of instance %[2]d, which has no NodeClaim.", actAbsent: "%[1]s marks the instance of NodeClaim %[2]d as absent.",
	actGone:      "%[1]s marks the instance of NodeClaim %[2]d as gone.",
	actTerminate: "The launcher terminates the instance of NodeClaim %[2]d, which is being deleted.", actEnd: "The launcher receives the request to terminate instance %[2]d.",
	actGoneNotice: "A writer learns that the instance of NodeClaim %[2]d is terminated, and deletes the NodeClaim.", actRemove: "A writer removes the finalizer of NodeClaim %[2]d.",
	actTimeout: "NodeClaim %[2]d has no instance in time and is deleted.", actHorizon: "The NodeClaims of intent %[2]d are too old to be launched, and no request for it is in flight.",
	actVisible: "EC2 shows instance %[2]d in every description from now on.", actDelete: "A user deletes NodeClaim %[2]d.",
	actCrash: "%[1]s crashes and restarts.",
}

// fillSentence replaces the writer and the number in a sentence.
func fillSentence(text string, a ModelAction) string {
	return strings.NewReplacer("%[1]s", fmt.Sprintf("Writer %d", a.Who+1), "%[2]d", strconv.Itoa(int(a.What)+1)).Replace(text)
}

// Sentence describes an action.
func (m LaunchModel) Sentence(a ModelAction, swapped bool) string {
	if swapped {
		a.Who = 1 - a.Who
	}
	return fillSentence(launchSentences[a.Kind], a)
}

// stepper collects the steps from one state.
type stepper struct {
	m     LaunchModel
	s     launchState
	steps []Transition[launchState]
}

// add adds a step; the writers are ordered, because they are alike.
func (p *stepper) add(kind, who, what uint8, next launchState, broken string) {
	a := ModelAction{Kind: kind, Who: who, What: what, Rescue: kind == actCrash || kind == actDelete || kind == actAnswer}
	p.m.forgetUnused(&next)
	if isLess(&next.Writers[1], &next.Writers[0]) || next.Writers[0] == next.Writers[1] && isLess(&next.Counted[1], &next.Counted[0]) {
		next.Writers[0], next.Writers[1] = next.Writers[1], next.Writers[0]
		next.Counted[0], next.Counted[1] = next.Counted[1], next.Counted[0]
		a.Swapped = true
	}
	p.steps = append(p.steps, Transition[launchState]{a, next, broken})
}

// Steps appends every step from a state.
func (m LaunchModel) Steps(s launchState, steps []Transition[launchState]) []Transition[launchState] {
	p := &stepper{m, s, steps}
	p.stepWatcher()
	for w := range s.Writers {
		p.stepWriter(w)
	}
	p.stepLauncher()
	for c := range s.Claims {
		p.stepClaim(c)
	}
	p.stepEnvironment()
	return p.steps
}

// stepWatcher swaps the outbox at the version that it has read, so it is atomic. Its timeouts may end at any
// moment.
func (p *stepper) stepWatcher() {
	s := p.s
	if s.Sequence < p.m.lastBatch() {
		n := s
		n.Outbox, n.Sequence, n.Plan, n.List = outboxSent, s.Sequence+1, 0, 0
		n.touchOutbox(-1)
		p.add(actBatch, 0, 0, n, "")
	}
	if s.Outbox == outboxSent || s.Outbox == outboxApplying {
		n := s
		n.Outbox, n.Sequence, n.Plan, n.List = outboxDone, s.Sequence+1, 0, 0
		n.touchOutbox(-1)
		p.add(actClose, 0, 0, n, "")
	}
}

// stepLauncher calls EC2 for each request in flight, and terminates instances. A result is published
// as long as it is not lost, so a crash before the publication needs no state.
func (p *stepper) stepLauncher() {
	s := p.s
	for intent := range p.m.intents() {
		bit := uint8(1) << intent
		if s.Requests&bit == 0 {
			continue
		}
		n := s
		n.Requests &^= bit
		p.add(actExpire, 0, intent, n, "")
		launches := s.Tokens[intent] == tokenUnused || p.m.Bug == "token-random" && s.Tokens[intent] == tokenLaunched
		if launches {
			n, broken := p.launch(intent)
			p.add(actLaunch, 0, intent, n, broken)
		}
		if s.Tokens[intent] == tokenUnused {
			n = s
			n.Tokens[intent] = tokenRefused
			p.add(actRefuse, 0, intent, n, "")
			p.denyLaunch(intent)
		}
	}
	for slot := range uint8(instanceCount) {
		if s.Terminations&(1<<slot) != 0 {
			n := s
			n.Terminations &^= 1 << slot
			broken := ""
			if isRunning(s.Instances[slot]) {
				n.Instances[slot] = instanceEnded
				broken = p.checkTermination(slot)
			}
			p.add(actEnd, 0, slot, n, broken)
		}
	}
}

// denyLaunch delivers a denial that does not use the token. The claims are deleted and keep their finalizers,
// because a later request may launch them.
func (p *stepper) denyLaunch(intent uint8) {
	n := p.s
	for c, claim := range p.s.Claims {
		if p.m.IntentOf[c] == intent && claim.Phase == claimPresent && claim.Admitted && claim.Bound == noInstance {
			n.Claims[c].Phase, n.Claims[c].Spent = claimDeleting, claim.Spent || p.m.Bug == "unspent-is-refused"
			n.touchClaim(c, -1)
		}
	}
	if n != p.s {
		p.add(actDeny, 0, intent, n, "")
	}
}

// launch starts the instances of an intent.
func (p *stepper) launch(intent uint8) (n launchState, broken string) {
	n = p.s
	n.Tokens[intent] = tokenLaunched
	claims, existing := p.m.claimsOfIntent(intent), 0
	for c, claim := range p.s.Claims {
		if claims&(1<<c) != 0 && claim.Admitted && (claim.Phase == claimPresent || claim.Phase == claimDeleting) {
			existing++
		}
	}
	wanted := countBits(claims)
	if existing < wanted {
		broken = "no instance is launched without a NodeClaim"
	}
	for _, slot := range p.m.slotsOf(intent) {
		if wanted > 0 && n.Instances[slot] == instanceNone {
			n.Instances[slot] = instanceFresh
			wanted--
		}
	}
	return n, broken
}

// checkTermination checks that the instance belongs to no claim that stays.
func (p *stepper) checkTermination(slot uint8) string {
	for _, c := range p.s.Claims {
		if c.Bound == slot+1 && c.Phase == claimPresent {
			return "an instance is terminated only if its NodeClaim requests it"
		}
	}
	return ""
}

// stepClaim takes the steps whose decision and write concern one claim only; a swap makes them atomic.
func (p *stepper) stepClaim(c int) { //nolint:gocyclo // one rule of the protocol, which is read in one piece
	s, claim, at := p.s, p.s.Claims[c], uint8(c)
	change := func(kind uint8, broken string, edit func(*modelClaim)) {
		n := s
		edit(&n.Claims[c])
		n.touchClaim(c, -1)
		p.add(kind, 0, at, n, broken)
	}
	unbound := claim.Bound == noInstance
	ended := !unbound && s.Instances[claim.Bound-1] == instanceEnded
	switch claim.Phase {
	case claimPresent:
		// A failed or refused claim is deleted; so is one that EC2 has terminated.
		if claim.Spent || claim.Admitted && unbound && s.Late&(1<<c) != 0 {
			change(actTimeout, "", func(k *modelClaim) { k.Phase = claimDeleting })
		}
		change(actDelete, "", func(k *modelClaim) { k.Phase = claimDeleting })
	case claimDeleting:
		if !unbound && isRunning(s.Instances[claim.Bound-1]) {
			n := s
			n.Instances[claim.Bound-1] = instanceEnded
			p.add(actTerminate, 0, at, n, p.checkTermination(claim.Bound-1))
		}
		if claim.Gone || unbound && (!claim.Admitted || claim.Spent) {
			broken := ""
			if !unbound && isRunning(s.Instances[claim.Bound-1]) {
				broken = "a NodeClaim outlives its instance"
			}
			if unbound && claim.Admitted && p.leavesInstance(c) {
				broken = "a NodeClaim outlives its instance"
			}
			change(actRemove, broken, func(k *modelClaim) { *k = modelClaim{Phase: claimRemoved} })
		}
	}
	if ended && !claim.Gone && claim.Phase != claimRemoved {
		change(actGoneNotice, "", func(k *modelClaim) { k.Gone, k.Phase = true, claimDeleting })
	}
}

// leavesInstance reports whether more unbound instances of the claim's intent run than its other claims can be bound to.
func (p *stepper) leavesInstance(claim int) bool {
	running, waiting := 0, 0
	for _, slot := range p.m.slotsOf(p.m.IntentOf[claim]) {
		if isRunning(p.s.Instances[slot]) && !p.isBound(slot) {
			running++
		}
	}
	for c, other := range p.s.Claims {
		if c != claim && p.m.IntentOf[c] == p.m.IntentOf[claim] && other.Admitted && other.Bound == noInstance {
			waiting++
		}
	}
	return running > waiting
}

// requestsEnded reports whether no request for the intent is in flight or can be sent: a writer pauses for less
// than the time between the end of the requests and the launch horizon (garbagecollection.LaunchHorizon).
func (p *stepper) requestsEnded(intent uint8) bool {
	if p.s.Requests&(1<<intent) != 0 {
		return false
	}
	for _, w := range p.s.Writers {
		if w.Step == writerMark || w.Step == writerSend && w.Sends&(1<<intent) != 0 {
			return false
		}
	}
	return true
}

// stepEnvironment crashes writers, loses results, and ends the delay of descriptions.
func (p *stepper) stepEnvironment() {
	s := p.s
	for w := range s.Writers {
		if s.Writers[w].Step != writerIdle {
			n := s
			n.Writers[w], n.Counted[w] = modelWriter{}, countedClaims{}
			p.add(actCrash, uint8(w), 0, n, "")
		}
	}
	for intent := range p.m.intents() {
		if claims := p.existingOf(intent); claims&^s.Late != 0 && p.requestsEnded(intent) {
			n := s
			n.Late |= claims
			p.add(actHorizon, 0, intent, n, "")
		}
	}
	for slot := range uint8(instanceCount) {
		if s.Instances[slot] == instanceFresh {
			n := s
			n.Instances[slot] = instanceVisible
			p.add(actVisible, 0, slot, n, "")
		}
	}
}

// existingOf returns the claims of an intent, if one of them may have been launched.
func (p *stepper) existingOf(intent uint8) (claims uint8) {
	admitted := false
	for c, claim := range p.s.Claims {
		if p.m.IntentOf[c] == intent && (claim.Phase == claimPresent || claim.Phase == claimDeleting) {
			claims |= 1 << c
			admitted = admitted || claim.Admitted
		}
	}
	if !admitted {
		return 0
	}
	return claims
}
