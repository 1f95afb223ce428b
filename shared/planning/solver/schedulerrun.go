package solver

import (
	"math"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// schedulerRun is the cluster as pods reach the scheduler in one order. Simulating and undoing a
// removal costs time only for the pods and nodes that it changes.
type schedulerRun struct {
	nodes []*nodeInfo
	// free is the free capacity by node, and removed marks nodes that take no pods.
	free    []amounts
	removed []bool
	// scores are the scores of all nodes for each class.
	scores map[*equivalenceClass]*nodeScores
	// placed are the pods that were placed on each node.
	placed map[int][]evictedPod
	// removedNodes are the nodes that the current removal removed, and placedClasses are the classes
	// of the pods that it placed. changedNodes are all nodes that it changed, some more than once:
	// first the removed ones, then one for each placed pod.
	placedClasses              []*equivalenceClass
	removedNodes, changedNodes []int
}

// nodeScores holds the score of each node for one class; a negative score means that the pod does not
// fit.
type nodeScores struct {
	scores []float32
	// updated is how many entries of changedNodes the scores include.
	updated int
}

// initialize adds all nodes of the simulation.
func (t *schedulerRun) initialize(r *schedulerSimulation) {
	t.scores, t.placed = map[*equivalenceClass]*nodeScores{}, map[int][]evictedPod{}
	t.addNodes(r.nodes)
}

// addNodes adds further nodes.
func (t *schedulerRun) addNodes(berths []*nodeInfo) {
	for _, b := range berths {
		t.nodes = append(t.nodes, b)
		t.free = append(t.free, append(amounts(nil), b.free...))
		t.removed = append(t.removed, false)
	}
}

// reschedulePods evicts the pods of the nodes, including those placed there since, and reschedules
// them in the given order. It returns the pods that find no node.
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

// placePod places a pod on a node.
func (t *schedulerRun) placePod(m evictedPod, i int) {
	t.free[i].subtract(m.class.requests)
	t.placed[i] = append(t.placed[i], m)
	t.placedClasses, t.changedNodes = append(t.placedClasses, m.class), append(t.changedNodes, i)
}

// scoresFor returns the current scores of all nodes for a class.
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

// spareNodes is the spare capacity of score lists for launched nodes.
const spareNodes = 32

// scoreNode returns the score of a node for a class; -1 if the pod does not fit. As in
// kube-scheduler's defaults, it adds NodeResourcesFit with LeastAllocated (the free share of cpu and
// memory) and NodeResourcesBalancedAllocation (how equal both shares are), with equal weights.
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

// findBestNode returns the index of the node with the highest score; -1 if no node fits.
func (t *schedulerRun) findBestNode(r *schedulerSimulation, m *evictedPod) int {
	at, most, p := -1, float32(-1), m.class
	if len(p.kind.spec.Claims) > 0 { // Its devices leave it the planned node only.
		if m.planned >= 0 && t.scoresFor(p)[m.planned] >= 0 && t.allowsNode(r, m, m.planned) {
			return m.planned
		}
		return -1
	}
	free := !p.hasConflicts && len(p.sameDomainKeys) == 0
	for i, score := range t.scoresFor(p) {
		if score > most && (free || t.allowsNode(r, m, i)) {
			at, most = i, score
		}
	}
	return at
}

// allowsNode reports whether the other pods on the node, and the domains that the pod must stay in,
// allow the node.
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

// hasConflict reports whether the pods on a node and the class exclude each other.
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

// keepRemoval makes the removal permanent.
func (t *schedulerRun) keepRemoval() {
	for p, l := range t.scores {
		t.scoresFor(p)
		l.updated = 0
	}
	for _, i := range t.removedNodes {
		delete(t.placed, i)
	}
	t.dropScores()
}

// undoRemoval undoes the removal and drops the nodes from index known on.
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
	t.dropScores()
}

// maxScoreLists bounds the memory of a run: 10 MiB in a cluster of 5,000 nodes.
const maxScoreLists = 512

// dropScores drops all scores if there are too many lists; they are recomputed on demand.
func (t *schedulerRun) dropScores() {
	if len(t.scores) > maxScoreLists {
		clear(t.scores)
	}
}
