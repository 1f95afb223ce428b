package solver

import (
	"math"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// trial is a cluster into which pods come in one order. Trying something, and undoing
// it, takes as long as it takes to look at the pods and nodes that are concerned.
type trial struct {
	berths []*berth
	// room is what is left, berth by berth, and gone are those that take no pod.
	room []amounts
	gone []bool
	// likings are how each party likes each berth.
	likings map[*party]*liking
	// landed are the pods that came to each berth.
	landed map[int][]mover
	// left are the berths that were left in the removal under way, and came the pods
	// that came in it. touched are all berths that it changed, some of them often: first
	// those that were left, then that of each pod.
	came          []*party
	left, touched []int
}

// liking is how much a party would like each berth; below zero, it cannot have it.
type liking struct {
	scores []float32
	// seen is how many of the touched berths are as they are now.
	seen int
}

// begin starts with all berths of a rehearsal.
func (t *trial) begin(r *rehearsal) {
	t.likings, t.landed = map[*party]*liking{}, map[int][]mover{}
	t.arrive(r.berths)
}

// arrive adds berths that come after those that are there.
func (t *trial) arrive(berths []*berth) {
	for _, b := range berths {
		t.berths = append(t.berths, b)
		t.room = append(t.room, append(amounts(nil), b.room...))
		t.gone = append(t.gone, false)
	}
}

// move lets pods leave their berths, who came there since as well, and come again in
// some order. It returns those for which there is no room.
func (t *trial) move(r *rehearsal, homes []int, leaving [][]mover, arranged func([][]mover) []mover) (stranded []planning.PodRef) {
	t.came, t.left, t.touched = t.came[:0], t.left[:0], t.touched[:0]
	var all [][]mover
	for k, i := range homes {
		if t.gone[i] {
			continue
		}
		t.gone[i], t.left, t.touched = true, append(t.left, i), append(t.touched, i)
		from := leaving[k]
		for _, m := range t.landed[i] {
			from = append(slices.Clip(from), mover{m.party, m.pod, i, m.planned})
		}
		all = append(all, from)
	}
	for _, m := range arranged(all) {
		if i := t.best(r, &m); i >= 0 {
			t.settle(m, i)
			continue
		}
		pod := *m.pod
		pod.Node = t.berths[m.home].node.Name
		stranded = append(stranded, pod)
	}
	return stranded
}

// settle puts a pod on a berth.
func (t *trial) settle(m mover, i int) {
	t.room[i].sub(m.party.need)
	t.landed[i] = append(t.landed[i], m)
	t.came, t.touched = append(t.came, m.party), append(t.touched, i)
}

// liking is how a party likes the berths now.
func (t *trial) liking(p *party) []float32 {
	l := t.likings[p]
	if l == nil {
		l = &liking{scores: make([]float32, 0, len(t.berths)+spareBerths)}
		t.likings[p] = l
	}
	for ; l.seen < len(t.touched); l.seen++ {
		if i := t.touched[l.seen]; i < len(l.scores) {
			l.scores[i] = t.score(p, i)
		}
	}
	for i := len(l.scores); i < len(t.berths); i++ {
		l.scores = append(l.scores, t.score(p, i))
	}
	return l.scores
}

// spareBerths is how many nodes may be launched until lists have to grow.
const spareBerths = 32

// score is the scheduler's NodeResourcesFit with LeastAllocated, and as much again
// for NodeResourcesBalancedAllocation, as they are by default: the part of cores and
// memory that is left when the pod has come, and how alike both parts are.
func (t *trial) score(p *party, i int) float32 {
	room := t.room[i]
	if t.gone[i] || !p.need.fits(room) || !p.letsIn(t.berths, i) {
		return -1
	}
	b := t.berths[i]
	cores, bytes := part(room[0]-p.need[0], b.cores), part(room[1]-p.need[1], b.bytes)
	return float32((cores+bytes)/2 + 1 - math.Abs(cores-bytes)/2)
}

func part(of int64, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return float64(of) / all
}

// best is the berth that a pod gets, -1 if none takes it.
func (t *trial) best(r *rehearsal, m *mover) int {
	at, most, p := -1, float32(-1), m.party
	free := !p.shy && len(p.within) == 0
	for i, score := range t.liking(p) {
		if score > most && (free || t.open(r, m, i)) {
			at, most = i, score
		}
	}
	return at
}

// open reports whether other pods, and the domains that the pod must stay in, allow
// a berth.
func (t *trial) open(r *rehearsal, m *mover, i int) bool {
	for _, key := range m.party.within {
		if m.planned < 0 || m.planned == i {
			break
		}
		planned, known := t.berths[m.planned].domain(key)
		if value, ok := t.berths[i].domain(key); !known || !ok || value != planned {
			return false
		}
	}
	return !m.party.shy || !t.shuts(r, m.party, i)
}

// shuts reports whether those who are on a berth and a party exclude each other.
func (t *trial) shuts(r *rehearsal, p *party, i int) bool {
	b := t.berths[i]
	if planning.PortsConflict(b.ports, p.kind.spec.HostPorts) {
		return true
	}
	for _, one := range b.residents {
		if r.apart(p, one.kind) {
			return true
		}
	}
	for _, other := range t.landed[i] {
		if r.apart(p, other.party.kind) {
			return true
		}
	}
	return false
}

// keep lets the removal last.
func (t *trial) keep() {
	for p, l := range t.likings {
		t.liking(p)
		l.seen = 0
	}
	for _, i := range t.left {
		delete(t.landed, i)
	}
	t.came, t.left, t.touched = t.came[:0], t.left[:0], t.touched[:0]
	t.forget()
}

// undo takes the removal back, and the berths beyond those that were known before.
func (t *trial) undo(known int) {
	for _, i := range t.left {
		t.gone[i] = false
	}
	onto := t.touched[len(t.left):]
	for k, i := range slices.Backward(onto) {
		need := t.came[k].need
		for d := range need {
			t.room[i][d] += need[d]
		}
		t.landed[i] = t.landed[i][:len(t.landed[i])-1]
	}
	t.berths, t.room, t.gone = t.berths[:known], t.room[:known], t.gone[:known]
	for p, l := range t.likings {
		l.scores = l.scores[:min(len(l.scores), known)]
		for _, i := range t.touched[:l.seen] {
			if i < len(l.scores) {
				l.scores[i] = t.score(p, i)
			}
		}
		l.seen = 0
	}
	t.touched = t.touched[:0]
	t.forget()
}

// likingsMost bounds the memory that a trial takes: 10 MiB in a cluster of 5,000
// nodes.
const likingsMost = 512

// forget drops likings where there are too many: they are worked out anew when they
// are asked for.
func (t *trial) forget() {
	if len(t.likings) > likingsMost {
		clear(t.likings)
	}
}
