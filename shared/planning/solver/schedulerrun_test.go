package solver

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// newRandomRun returns a run with nodes of a few sizes, some of them (in one of eight runs all) without total, or with equal free capacity.
func newRandomRun(random *rand.Rand, size int) *schedulerRun {
	nodes, unknown := make([]*nodeInfo, size), random.IntN(8) == 0
	for i := range nodes {
		cores, memory := int64(4000)<<random.IntN(3), int64(16)<<(30+random.IntN(2))
		n := &nodeInfo{existingNode: &existingNode{node: &planning.Node{}}, cores: float64(cores), memory: float64(memory)}
		n.free = amounts{cores * int64(random.IntN(9)-1) / 8, memory * int64(random.IntN(8)) / 8}
		if unknown || random.IntN(50) == 0 {
			n.cores, n.memory = 0, 0
		}
		nodes[i] = n
	}
	t := &schedulerRun{placed: map[int][]evictedPod{}}
	t.addNodes(nodes)
	return t
}

// scanForBest finds the best node by computing all scores.
func scanForBest(t *schedulerRun, p *equivalenceClass) int {
	at, most := -1, float32(-1)
	for i := range t.nodes {
		if score := t.scoreNode(p, i); score > most {
			at, most = i, score
		}
	}
	return at
}

func TestBlocksDoNotChangeTheBestNode(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		run := newRandomRun(random, 1+random.IntN(300))
		known := len(run.nodes)
		run.addNodes(newRandomRun(random, 1+random.IntN(100)).nodes)
		blocks := len(run.blocks)
		for range 60 {
			if i := random.IntN(len(run.nodes)); random.IntN(4) == 0 && !run.removed[i] {
				run.reschedulePods(nil, []int{i}, make([][]evictedPod, 1), func([][]evictedPod) []evictedPod { return nil })
				if random.IntN(2) == 0 {
					run.undoRemoval(len(run.nodes))
				}
			}
			p := &equivalenceClass{kind: &podKind{spec: &planning.PodSpec{}}, anyOf: []planning.Requirements{{}}, requests: amounts{int64(random.IntN(4000)), random.Int64N(16 << 30)}}
			got, want := run.findBestNode(nil, &evictedPod{class: p, planned: -1}), scanForBest(run, p)
			if got != want {
				t.Fatalf("seed %d: pod %v is placed on node %d, want node %d", seed, p.requests, got, want)
			}
			run.changedNodes, run.removedNodes, run.placedClasses = nil, nil, nil
			if got >= 0 {
				run.placePod(evictedPod{class: p}, got)
			}
			if random.IntN(2) == 0 {
				run.undoRemoval(len(run.nodes))
			}
		}
		run.changedNodes, run.removedNodes, run.placedClasses = nil, nil, nil
		run.undoRemoval(known)
		if want := (known + blockSize - 1) / blockSize; len(run.blocks) != want || blocks < want {
			t.Fatalf("seed %d: %d blocks of %d nodes, want %d", seed, len(run.blocks), known, want)
		}
	}
}

// TestFullNodesTakePodsWithoutRequests places a pod that requests no cores, or no memory, on the only node without a taint, which has none
// left.
func TestFullNodesTakePodsWithoutRequests(t *testing.T) {
	for _, free := range []amounts{{0, 4 << 30}, {2000, 0}} {
		run := &schedulerRun{}
		newNode := func(free amounts, taints ...corev1.Taint) *nodeInfo {
			return &nodeInfo{existingNode: &existingNode{node: &planning.Node{}, taints: taints}, free: free, cores: 4000, memory: 16 << 30}
		}
		for range blockSize {
			run.addNodes([]*nodeInfo{newNode(amounts{3000, 8 << 30}, corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule})})
		}
		run.addNodes([]*nodeInfo{newNode(free)})
		p := &equivalenceClass{kind: &podKind{spec: &planning.PodSpec{}}, anyOf: []planning.Requirements{{}}, requests: amounts{free[0] / 2, free[1] / 2}}
		if got := run.findBestNode(nil, &evictedPod{class: p, planned: noIndex}); got != blockSize {
			t.Errorf("a pod that requests %v gets node %d, want the node with %v free", p.requests, got, free)
		}
	}
	if got := (&schedulerRun{}).findBestNode(nil, &evictedPod{class: &equivalenceClass{kind: &podKind{spec: &planning.PodSpec{}}}}); got != noIndex {
		t.Errorf("without nodes, a pod gets node %d", got)
	}
}

// TestFewNodesAreScored counts the nodes whose labels a pod was compared with, which scoreNode does for each node with
// free capacity. Without blocks it would be most of them.
func TestFewNodesAreScored(t *testing.T) {
	for _, requests := range []amounts{{100, 256 << 20}, {6000, 256 << 20}, {200, 24 << 30}, {6000, 24 << 30}} {
		checkScoredNodes(t, requests)
	}
}

func checkScoredNodes(t *testing.T, requests amounts) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 0))
	run := newRandomRun(random, 20_000)
	for i := range run.free {
		if requests[0] > 100 { // A large pod takes different shares of nodes of different sizes.
			run.nodes[i].cores, run.nodes[i].memory = 16000, 64<<30
		}
		run.free[i] = amounts{int64(run.nodes[i].cores * random.Float64()), int64(run.nodes[i].memory * random.Float64())}
	}
	run.updateBlocks(0)
	p := &equivalenceClass{kind: &podKind{spec: &planning.PodSpec{}}, anyOf: []planning.Requirements{{}}, requests: requests}
	if got, want := run.findBestNode(nil, &evictedPod{class: p, planned: -1}), scanForBest(run, &equivalenceClass{kind: p.kind, anyOf: p.anyOf, requests: p.requests}); got != want {
		t.Fatalf("the pod is placed on node %d, want node %d", got, want)
	}
	compared := 0
	for _, match := range p.matches {
		if match != 0 {
			compared++
		}
	}
	if compared > len(run.nodes)/50 {
		t.Errorf("%d of %d nodes were compared with a pod that requests %v, want at most a fiftieth", compared, len(run.nodes), requests)
	}
}
