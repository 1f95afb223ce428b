package protocol

// Phases of a NodeClaim.
const (
	claimNone uint8 = iota
	claimPresent
	claimDeleting
	claimRemoved
)

// States of the outbox.
const (
	outboxIdle uint8 = iota
	outboxSent
	outboxApplying
	outboxDone
)

// What EC2 has stored under a token.
const (
	tokenUnused uint8 = iota
	tokenLaunched
	tokenRefused
)

// States of an instance. A fresh one may be missing in a description.
const (
	instanceNone uint8 = iota
	instanceFresh
	instanceVisible
	instanceEnded
)

// Steps of a writer, which is a replica of lifecycle.
const (
	writerIdle uint8 = iota
	writerCount
	writerAdmit
	writerCreate
	writerFinish
	writerList
	writerMark
	writerSend
	writerCompare
	writerBind
)

// What a writer does with a claim that it has listed.
const (
	viewOther uint8 = iota
	viewMark
	viewDelete
	viewLaunch
	viewCounts
)

const (
	claimCount    = 2
	instanceCount = 4
	noInstance    = uint8(0)
)

// modelClaim is a NodeClaim. Bound is the number of its instance plus one.
type modelClaim struct {
	Phase, Bound    uint8
	Admitted, Spent bool
	Absent, Gone    bool
}

// modelWriter is what one replica remembers between two effects.
type modelWriter struct {
	Step, Plan uint8
	// List are the claims of the outbox as read, or the claims that the writer admits or creates.
	List uint8
	// Done is whether the outbox as read was done; OutboxStale is whether it has changed since.
	Done, OutboxStale bool
	// Views are what the writer does with each claim, and Match the instances that it binds. Stale are
	// the claims that have changed since they were read.
	Views, Match [claimCount]uint8
	Stale        uint8
	// Listed are the instances of an inventory. Absences are the claims that were marked as absent before it
	// began, and Lates the claims that were too old to be launched.
	Listed, Absences, Lates, Orphans, Sends uint8
	// Created are the claims whose UIDs the writer has read: of the plan while it creates them, and of earlier plans
	// while it counts.
	Created uint8
	// Gone are the claims to mark as gone, and Missing those to mark as absent.
	Gone, Missing uint8
}

// launchState is one state of the launch protocol.
type launchState struct {
	Outbox, Sequence, Plan, List uint8
	// Recorded are the claims of List whose UIDs the outbox has. A claim that is created again has another UID.
	Recorded  uint8
	Claims    [claimCount]modelClaim
	Tokens    [claimCount]uint8
	Instances [instanceCount]uint8
	// Requests and Terminations are messages in flight. A message stays until it is lost, so that it can be
	// delivered any number of times and in any order. Plans, results and inventories need no state: each can
	// be delivered at any time, or never.
	Requests, Terminations uint8
	// Late are the claims that are too old to be launched.
	Late    uint8
	Writers [2]modelWriter
	Counted [2]countedClaims
}

// countedClaims is what a replica knows for its next count, until it crashes. Batch is the batch whose plan it may count with its cache, 0 if
// it has to list the API server, and Claims are the claims that it then counts if they exist.
type countedClaims struct {
	Batch, Claims uint8
}

// forgetUnused clears what no later count needs, so that states which differ only in it are visited once.
func (m LaunchModel) forgetUnused(s *launchState) {
	needed := s.Sequence < m.lastBatch() || s.Sequence == m.lastBatch() && s.Outbox == outboxSent
	for w := range s.Counted {
		for c, claim := range s.Claims {
			if claim.Phase == claimNone || claim.Phase == claimRemoved {
				s.Counted[w].Claims &^= 1 << c
			}
		}
		if !needed {
			s.Counted[w] = countedClaims{}
		}
	}
}

// LaunchModel is the launch protocol with two writers.
type LaunchModel struct {
	Name string
	// Plans are the intents of each plan, as bits; plan i answers batch Batches[i].
	Plans, Batches []uint8
	// IntentOf is the intent of each claim, and Limit how many claims may exist.
	IntentOf [claimCount]uint8
	Limit    int
	// Bug is the name of a planted bug, or "".
	Bug string
}

// LaunchModels returns the configurations that are explored: two plans for one place, where the second replaces
// the first; two answers to one batch; one plan with two intents; one intent with two claims; and a third batch, whose
// plan is that of the second.
func LaunchModels() []LaunchModel {
	return []LaunchModel{
		{Name: "two batches, limit 1", Plans: []uint8{1, 2}, Batches: []uint8{1, 2}, IntentOf: [2]uint8{0, 1}, Limit: 1},
		{Name: "two answers to one batch", Plans: []uint8{1, 2}, Batches: []uint8{1, 1}, IntentOf: [2]uint8{0, 1}, Limit: 1},
		{Name: "one plan of two intents", Plans: []uint8{3}, Batches: []uint8{1}, IntentOf: [2]uint8{0, 1}, Limit: 2},
		{Name: "one intent of two claims", Plans: []uint8{3}, Batches: []uint8{1}, IntentOf: [2]uint8{0, 0}, Limit: 2},
		{Name: "three batches, limit 1", Plans: []uint8{1, 2, 2}, Batches: []uint8{1, 2, 3}, IntentOf: [2]uint8{0, 1}, Limit: 1},
	}
}

// Initial returns the state without pods.
func (m LaunchModel) Initial() launchState { return launchState{} }

// claimsOf returns the claims of a plan.
func (m LaunchModel) claimsOf(plan uint8) uint8 { return m.Plans[plan] }

// claimsOfIntent returns the claims of an intent.
func (m LaunchModel) claimsOfIntent(intent uint8) (claims uint8) {
	for c, of := range m.IntentOf {
		if of == intent {
			claims |= 1 << c
		}
	}
	return claims
}

// slotsOf returns the numbers of the instances that an intent can have; those behind the number of
// its claims exist only if it is launched twice.
func (m LaunchModel) slotsOf(intent uint8) []uint8 {
	if m.IntentOf[1] == 0 {
		return []uint8{0, 1, 2, 3}
	}
	return []uint8{intent * 2, intent*2 + 1}
}

func (m LaunchModel) intentOfInstance(slot uint8) uint8 {
	if m.IntentOf[1] == 0 {
		return 0
	}
	return slot / 2
}

// lastBatch returns the number of the last batch that the watcher sends.
func (m LaunchModel) lastBatch() uint8 { return max(m.Batches[0], m.Batches[len(m.Batches)-1]) }

// intents returns the number of intents.
func (m LaunchModel) intents() uint8 { return m.IntentOf[1] + 1 }

func countBits(set uint8) (n int) {
	for ; set != 0; set &= set - 1 {
		n++
	}
	return n
}

func isRunning(instance uint8) bool { return instance == instanceFresh || instance == instanceVisible }

// Check returns the promise that a state breaks.
func (m LaunchModel) Check(s launchState) string {
	for intent := range m.intents() {
		launched := 0
		for _, slot := range m.slotsOf(intent) {
			if s.Instances[slot] != instanceNone {
				launched++
			}
		}
		if launched > countBits(m.claimsOfIntent(intent)) {
			return "no intent is launched twice"
		}
	}
	counted := 0
	for _, c := range s.Claims {
		if c.Admitted && c.Phase != claimNone && c.Phase != claimRemoved {
			counted++
		}
	}
	if counted > m.Limit {
		return "no NodePool limit is exceeded"
	}
	a, b := s.Claims[0], s.Claims[1]
	if a.Bound != noInstance && a.Bound == b.Bound && a.Phase != claimRemoved && b.Phase != claimRemoved {
		return "an instance has one NodeClaim"
	}
	return ""
}

// IsSettled reports whether every claim has a running instance or is gone, and every instance has a claim.
func (m LaunchModel) IsSettled(s launchState) bool {
	if s.Outbox != outboxIdle && s.Outbox != outboxDone {
		return false
	}
	var owned uint8
	for _, c := range s.Claims {
		switch c.Phase {
		case claimPresent:
			if c.Bound == noInstance || !isRunning(s.Instances[c.Bound-1]) {
				return false
			}
			owned |= 1 << (c.Bound - 1)
		case claimDeleting:
			return false
		}
	}
	for slot, instance := range s.Instances {
		if isRunning(instance) && owned&(1<<slot) == 0 {
			return false
		}
	}
	return true
}

// touchClaim records that a claim has changed: a writer that has read it loses its swap.
func (s *launchState) touchClaim(c int, by int) {
	for w := range s.Writers {
		if w != by && s.Writers[w].readsClaims() {
			s.Writers[w].Stale |= 1 << c
		}
	}
}

func (w modelWriter) readsClaims() bool {
	return w.Step == writerMark || w.Step == writerBind || w.Step == writerSend
}

// readsOutbox reports whether the writer will swap the outbox that it has read.
func (w modelWriter) readsOutbox() bool {
	return w.Step == writerCount || w.Step == writerAdmit || w.Step == writerCreate || w.Step == writerFinish
}

func (s *launchState) touchOutbox(by int) {
	for w := range s.Writers {
		if w != by && s.Writers[w].readsOutbox() {
			s.Writers[w].OutboxStale = true
		}
	}
}

// String returns the name of the configuration.
func (m LaunchModel) String() string { return m.Name }
