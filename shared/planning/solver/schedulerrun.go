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
	// blocks bound the scores of blockSize nodes each, and bounds are those of the current pod.
	blocks []scoreBlock
	bounds []float32
	// placed are the pods that were placed on each node.
	placed map[int][]evictedPod
	// removedNodes are the nodes that the current removal removed, and placedClasses are the classes
	// of the pods that it placed. changedNodes are all nodes that it changed, some more than once:
	// first the removed ones, then one for each placed pod.
	placedClasses              []*equivalenceClass
	removedNodes, changedNodes []int
}

// blockSize is the number of nodes whose scores have a common bound.
const blockSize = 64

// noScore is the score of a node on which a pod does not fit. Other scores are at least 1.
const noScore = -1

// scoreBlock bounds the scores of blockSize nodes, so that the search for the best node skips most
// nodes without computing their scores.
type scoreBlock struct {
	// freeCores and freeMemory are the most that one node has free.
	freeCores, freeMemory int64
	// coreShare and memoryShare are the largest free shares of one node, and share is the largest of
	// the smaller share of each node.
	coreShare, memoryShare, share float64
	// cores and memory are the largest totals of one node, of which a pod uses the smallest share.
	cores, memory float64
}

// initialize adds all nodes of the simulation.
func (t *schedulerRun) initialize(r *schedulerSimulation) {
	t.placed = map[int][]evictedPod{}
	t.addNodes(r.nodes)
}

// addNodes adds further nodes.
func (t *schedulerRun) addNodes(berths []*nodeInfo) {
	from := len(t.nodes)
	for _, b := range berths {
		t.nodes = append(t.nodes, b)
		t.free = append(t.free, append(amounts(nil), b.free...))
		t.removed = append(t.removed, false)
	}
	t.updateBlocks(from)
}

// updateBlocks computes the blocks from the one of a node on.
func (t *schedulerRun) updateBlocks(from int) {
	t.blocks = t.blocks[:min(len(t.blocks), from/blockSize)]
	for len(t.blocks)*blockSize < len(t.nodes) {
		t.blocks = append(t.blocks, scoreBlock{})
		t.updateBlock((len(t.blocks) - 1) * blockSize)
	}
}

// updateBlock computes the block of a node.
func (t *schedulerRun) updateBlock(of int) {
	at := of / blockSize
	out := scoreBlock{freeCores: -1, freeMemory: -1, share: -1} // No pod fits.
	for i := at * blockSize; i < min((at+1)*blockSize, len(t.nodes)); i++ {
		room, n := t.free[i], t.nodes[i]
		if t.removed[i] || room[0] < 0 || room[1] < 0 {
			continue // No pod fits.
		}
		cores, memory := fractionOf(room[0], n.cores), fractionOf(room[1], n.memory)
		out.freeCores, out.freeMemory = max(out.freeCores, room[0]), max(out.freeMemory, room[1])
		out.coreShare, out.memoryShare, out.share = max(out.coreShare, cores), max(out.memoryShare, memory), max(out.share, min(cores, memory))
		out.cores, out.memory = max(out.cores, totalOf(n.cores)), max(out.memory, totalOf(n.memory))
	}
	t.blocks[at] = out
}

// totalOf returns the total for a bound. Pods use no share of an unknown total.
func totalOf(all float64) float64 {
	if all <= 0 {
		return math.MaxFloat64
	}
	return all
}

// maxScore returns a score that no node of the block exceeds for a pod; noScore if the pod fits on none.
// A node's score is 1 plus the smaller of its free shares of cpu and memory after the pod is placed.
func (b *scoreBlock) maxScore(requests amounts) float32 {
	if requests[0] > b.freeCores || requests[1] > b.freeMemory {
		return noScore
	}
	cores, memory := float64(requests[0])/b.cores, float64(requests[1])/b.memory
	const rounding = 1e-12 // More than the difference of two ways to compute a score.
	return float32(1 + rounding + min(b.coreShare-cores, b.memoryShare-memory, b.share-min(cores, memory)))
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
		t.updateBlock(i)
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
	t.updateBlock(i)
}

// scoreNode returns the score of a node for a class; noScore if the pod does not fit. As in
// kube-scheduler's defaults, it adds NodeResourcesFit with LeastAllocated (the free share of cpu and
// memory) and NodeResourcesBalancedAllocation (how equal both shares are), with equal weights.
func (t *schedulerRun) scoreNode(p *equivalenceClass, i int) float32 {
	if !t.fitsNode(p, i) {
		return noScore
	}
	room, b := t.free[i], t.nodes[i]
	cores, bytes := fractionOf(room[0]-p.requests[0], b.cores), fractionOf(room[1]-p.requests[1], b.memory)
	return float32((cores+bytes)/2 + 1 - math.Abs(cores-bytes)/2)
}

// fitsNode reports whether a pod of the class fits on the node, apart from the other pods on it.
func (t *schedulerRun) fitsNode(p *equivalenceClass, i int) bool {
	return !t.removed[i] && p.requests.fitsIn(t.free[i]) && p.matchesNode(t.nodes, i)
}

func fractionOf(of int64, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return float64(of) / all
}

// findBestNode returns the index of the node with the highest score, the first one if several have it;
// noIndex if no node fits.
func (t *schedulerRun) findBestNode(r *schedulerSimulation, m *evictedPod) int {
	if len(m.class.kind.spec.Claims) > 0 { // Its devices leave it the planned node only.
		if m.planned >= 0 && t.fitsNode(m.class, m.planned) && t.allowsNode(r, m, m.planned) {
			return m.planned
		}
		return noIndex
	}
	promising := 0
	t.bounds = t.bounds[:0]
	for k := range t.blocks {
		t.bounds = append(t.bounds, t.blocks[k].maxScore(m.class.requests))
		if t.bounds[k] > t.bounds[promising] {
			promising = k
		}
	}
	best := scoredNode{noIndex, noScore}
	if len(t.bounds) > 0 {
		t.searchBlock(r, m, promising, &best)
	}
	for k, bound := range t.bounds {
		if k != promising && best.isBeatenBy(bound, k*blockSize) {
			t.searchBlock(r, m, k, &best)
		}
	}
	return best.index
}

// scoredNode is a node and its score; noIndex and noScore if there is no node.
type scoredNode struct {
	index int
	score float32
}

// isBeatenBy reports whether a node with the score and index is better.
func (n *scoredNode) isBeatenBy(score float32, index int) bool {
	return score > n.score || score == n.score && index < n.index
}

// searchBlock replaces best with the best node of a block if that is better.
func (t *schedulerRun) searchBlock(r *schedulerSimulation, m *evictedPod, block int, best *scoredNode) {
	free := !m.class.hasConflicts && len(m.class.sameDomainKeys) == 0
	for i := block * blockSize; i < min((block+1)*blockSize, len(t.nodes)); i++ {
		if score := t.scoreNode(m.class, i); best.isBeatenBy(score, i) && (free || t.allowsNode(r, m, i)) {
			*best = scoredNode{i, score}
		}
	}
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
	t.updateBlocks(known)
	for _, i := range t.changedNodes {
		if i < known {
			t.updateBlock(i)
		}
	}
}
