package solver

import (
	"math"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// schedulerRun is a cluster into which pods come in one order. Trying something, and undoing
// it, takes as long as it takes to look at the pods and nodes that are concerned.
type schedulerRun struct {
	nodes []*nodeInfo
	// free is what is left, berth by berth, and gone are those that take no pod.
	free    []amounts
	removed []bool
	// scores are how each party likes each berth.
	scores map[*equivalenceClass]*nodeScores
	// placed are the pods that came to each berth.
	placed map[int][]evictedPod
	// left are the berths that were left in the removal under way, and came the pods
	// that came in it. touched are all berths that it changed, some of them often: first
	// those that were left, then that of each pod.
	placedClasses              []*equivalenceClass
	removedNodes, changedNodes []int
}

// nodeScores is how much a party would like each berth; below zero, it cannot have it.
type nodeScores struct {
	scores []float32
	// updated is how many of the touched berths are as they are now.
	updated int
}

// initialize starts with all berths of a rehearsal.
func (t *schedulerRun) initialize(r *schedulerSimulation) {
	t.scores, t.placed = map[*equivalenceClass]*nodeScores{}, map[int][]evictedPod{}
	t.addNodes(r.nodes)
}

// addNodes adds berths that come after those that are there.
func (t *schedulerRun) addNodes(berths []*nodeInfo) {
	for _, b := range berths {
		t.nodes = append(t.nodes, b)
		t.free = append(t.free, append(amounts(nil), b.free...))
		t.removed = append(t.removed, false)
	}
}

// reschedulePods lets pods leave their berths, who came there since as well, and come again in
// some order. It returns those for which there is no room.
func (t *schedulerRun) reschedulePods(r *schedulerSimulation, homes []int, leaving [][]evictedPod, arranged func([][]evictedPod) []evictedPod) (stranded []planning.PodRef) {
	t.placedClasses, t.removedNodes, t.changedNodes = t.placedClasses[:0], t.removedNodes[:0], t.changedNodes[:0]
	var all [][]evictedPod
	for k, i := range homes {
		if t.removed[i] {
			continue
		}
		t.removed[i], t.removedNodes, t.changedNodes = true, append(t.removedNodes, i), append(t.changedNodes, i)
		from := leaving[k]
		for _, m := range t.placed[i] {
			from = append(slices.Clip(from), evictedPod{m.class, m.pod, i, m.planned})
		}
		all = append(all, from)
	}
	for _, m := range arranged(all) {
		if i := t.findBestNode(r, &m); i >= 0 {
			t.placePod(m, i)
			continue
		}
		pod := *m.pod
		pod.Node = t.nodes[m.from].node.Name
		stranded = append(stranded, pod)
	}
	return stranded
}

// placePod puts a pod on a berth.
func (t *schedulerRun) placePod(m evictedPod, i int) {
	t.free[i].subtract(m.class.requests)
	t.placed[i] = append(t.placed[i], m)
	t.placedClasses, t.changedNodes = append(t.placedClasses, m.class), append(t.changedNodes, i)
}

// scoresFor is how a party likes the berths now.
func (t *schedulerRun) scoresFor(p *equivalenceClass) []float32 {
	l := t.scores[p]
	if l == nil {
		l = &nodeScores{scores: make([]float32, 0, len(t.nodes)+spareNodes)}
		t.scores[p] = l
	}
	for ; l.updated < len(t.changedNodes); l.updated++ {
		if i := t.changedNodes[l.updated]; i < len(l.scores) {
			l.scores[i] = t.scoreNode(p, i)
		}
	}
	for i := len(l.scores); i < len(t.nodes); i++ {
		l.scores = append(l.scores, t.scoreNode(p, i))
	}
	return l.scores
}

// spareNodes is how many nodes may be launched until lists have to grow.
const spareNodes = 32

// scoreNode is the scheduler's NodeResourcesFit with LeastAllocated, and as much again
// for NodeResourcesBalancedAllocation, as they are by default: the part of cores and
// memory that is left when the pod has come, and how alike both parts are.
func (t *schedulerRun) scoreNode(p *equivalenceClass, i int) float32 {
	room := t.free[i]
	if t.removed[i] || !p.requests.fitsIn(room) || !p.matchesNode(t.nodes, i) {
		return -1
	}
	b := t.nodes[i]
	cores, bytes := fractionOf(room[0]-p.requests[0], b.cores), fractionOf(room[1]-p.requests[1], b.memory)
	return float32((cores+bytes)/2 + 1 - math.Abs(cores-bytes)/2)
}

func fractionOf(of int64, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return float64(of) / all
}

// findBestNode is the berth that a pod gets, -1 if none takes it.
func (t *schedulerRun) findBestNode(r *schedulerSimulation, m *evictedPod) int {
	at, most, p := -1, float32(-1), m.class
	free := !p.hasConflicts && len(p.sameDomainKeys) == 0
	for i, score := range t.scoresFor(p) {
		if score > most && (free || t.allowsNode(r, m, i)) {
			at, most = i, score
		}
	}
	return at
}

// allowsNode reports whether other pods, and the domains that the pod must stay in, allow
// a berth.
func (t *schedulerRun) allowsNode(r *schedulerSimulation, m *evictedPod, i int) bool {
	for _, key := range m.class.sameDomainKeys {
		if m.planned < 0 || m.planned == i {
			break
		}
		planned, known := t.nodes[m.planned].domainValue(key)
		if value, ok := t.nodes[i].domainValue(key); !known || !ok || value != planned {
			return false
		}
	}
	return !m.class.hasConflicts || !t.hasConflict(r, m.class, i)
}

// hasConflict reports whether those who are on a berth and a party exclude each other.
func (t *schedulerRun) hasConflict(r *schedulerSimulation, p *equivalenceClass, i int) bool {
	b := t.nodes[i]
	if planning.PortsConflict(b.hostPorts, p.kind.spec.HostPorts) {
		return true
	}
	for _, one := range b.residents {
		if r.cannotShareNode(p, one.kind) {
			return true
		}
	}
	for _, other := range t.placed[i] {
		if r.cannotShareNode(p, other.class.kind) {
			return true
		}
	}
	return false
}

// keepRemoval lets the removal last.
func (t *schedulerRun) keepRemoval() {
	for p, l := range t.scores {
		t.scoresFor(p)
		l.updated = 0
	}
	for _, i := range t.removedNodes {
		delete(t.placed, i)
	}
	t.placedClasses, t.removedNodes, t.changedNodes = t.placedClasses[:0], t.removedNodes[:0], t.changedNodes[:0]
	t.dropScores()
}

// undoRemoval takes the removal back, and the berths beyond those that were known before.
func (t *schedulerRun) undoRemoval(known int) {
	for _, i := range t.removedNodes {
		t.removed[i] = false
	}
	onto := t.changedNodes[len(t.removedNodes):]
	for k, i := range slices.Backward(onto) {
		need := t.placedClasses[k].requests
		for d := range need {
			t.free[i][d] += need[d]
		}
		t.placed[i] = t.placed[i][:len(t.placed[i])-1]
	}
	t.nodes, t.free, t.removed = t.nodes[:known], t.free[:known], t.removed[:known]
	for p, l := range t.scores {
		l.scores = l.scores[:min(len(l.scores), known)]
		for _, i := range t.changedNodes[:l.updated] {
			if i < len(l.scores) {
				l.scores[i] = t.scoreNode(p, i)
			}
		}
		l.updated = 0
	}
	t.changedNodes = t.changedNodes[:0]
	t.dropScores()
}

// maxScoreLists bounds the memory that a trial takes: 10 MiB in a cluster of 5,000
// nodes.
const maxScoreLists = 512

// dropScores drops likings where there are too many: they are worked out anew when they
// are asked for.
func (t *schedulerRun) dropScores() {
	if len(t.scores) > maxScoreLists {
		clear(t.scores)
	}
}
