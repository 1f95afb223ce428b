package thresholds_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// lasting is a pod over time.
type lasting struct {
	// node is the index of its node, or waits for a pod on no node.
	node    int
	created time.Time
	// ends is when a terminating pod is gone; zero if the pod is not terminating.
	ends time.Time
}

const pendingNode = -1

// hours simulates a workload of one kind on some nodes, which users and AWS disrupt.
type hours struct {
	*rapid.T
	kind  string
	limit string
	stock instancetypes.InstanceTypes
	now   time.Time
	pods  []lasting
	// wanted is the desired number of pods.
	wanted int
	// leaving are the nodes being removed; decided has the nodes that consolidation removes.
	leaving []bool
	decided map[int]decision
	// moved are the evictions by consolidation. fewer are the times when young pods were scaled
	// down or completed.
	moved []move
	fewer []time.Time
}

// decision records when nodes were chosen, and how many pods could be moved at that time.
type decision struct {
	decided time.Time
	most    int
}

// move is one eviction.
type move struct {
	decision
	at time.Time
}

// createPod creates a pod on a kept node, or a pending one.
func (h *hours) createPod(at time.Time) {
	h.pods = append(h.pods, lasting{node: h.lands(), created: at})
}

func (h *hours) lands() int {
	node := rapid.IntRange(pendingNode, len(h.leaving)-1).Draw(h.T, "destination node")
	if node != pendingNode && h.leaving[node] {
		return pendingNode
	}
	return node
}

// pass advances time. Deleted pods get successors, pending pods may be bound to a node, and empty
// nodes are removed and replaced.
func (h *hours) pass() {
	h.now = h.now.Add(time.Duration(rapid.IntRange(1, 35).Draw(h.T, "minutes")) * time.Minute)
	gone := func(p lasting) bool { return !p.ends.IsZero() && !p.ends.After(h.now) }
	for _, p := range slices.Clone(h.pods) {
		if gone(p) && h.kind != "ReplicaSet" {
			h.createPod(p.ends)
		}
	}
	h.pods = slices.DeleteFunc(h.pods, gone)
	for i := range h.pods {
		if h.pods[i].node == pendingNode {
			h.pods[i].node = h.lands()
		}
	}
	for node := range h.leaving {
		if !slices.ContainsFunc(h.pods, func(p lasting) bool { return p.node == node }) {
			h.keepNode(node)
		}
	}
}

// keepNode turns a node into one that is not being removed, or a new one.
func (h *hours) keepNode(node int) {
	h.leaving[node] = false
	delete(h.decided, node)
}

// drains starts the deletion of some pods on nodes being removed; the others are still blocked.
func (h *hours) drains() {
	for i := range h.pods {
		node := h.pods[i].node
		if node == pendingNode || !h.leaving[node] || !h.pods[i].ends.IsZero() || rapid.Bool().Draw(h.T, "blocked") {
			continue
		}
		if by, ok := h.decided[node]; ok {
			h.moved = append(h.moved, move{at: h.now, decision: by})
		}
		h.pods[i].ends = h.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(h.T, "grace")) * time.Minute)
		if h.kind == "ReplicaSet" {
			h.createPod(h.now)
		}
	}
}

// shrinks deletes a pod that is not terminating. The youngest is deleted first, as with a
// Deployment, which loses the most information.
func (h *hours) shrinks() {
	for i, pod := range slices.Backward(h.pods) {
		if !pod.ends.IsZero() {
			continue
		}
		if h.now.Sub(pod.created) < time.Hour {
			h.fewer = append(h.fewer, h.now)
		}
		h.pods, h.wanted = slices.Delete(h.pods, i, i+1), h.wanted-1
		return
	}
}

// readSnapshot returns the snapshot that disruption reads.
func (h *hours) readSnapshot() planning.Snapshot {
	class := func(on int) planning.PodClass {
		class := pods("web", 0, 0, func(c *planning.PodClass) { c.Spec.OwnerKind = h.kind })
		for k, p := range h.pods {
			if p.node == on {
				class.Pods = append(class.Pods, planning.PodRef{Name: strconv.Itoa(k), UID: strconv.Itoa(k), Workload: "web", Created: p.created, Terminating: !p.ends.IsZero()})
			}
		}
		return class
	}
	nodes := make([]planning.Node, len(h.leaving))
	for i := range nodes {
		nodes[i] = node(strconv.Itoa(i), class(i))
		nodes[i].MarkedForDeletion = h.leaving[i]
	}
	s := fixture.Snapshot(fixture.Pool(), nodes...)
	s.TakenAt = h.now
	s.NodePools[0].Annotations = map[string]string{policy.EvictionsPerHour: h.limit}
	// Pods on a node being removed are also planned as pending.
	s.PendingPods = []planning.PodClass{class(pendingNode)}
	for i := range nodes {
		if h.leaving[i] {
			soon := class(i)
			for k := range soon.Pods {
				soon.Pods[k].Node = nodes[i].Name
			}
			s.PendingPods = append(s.PendingPods, soon)
		}
	}
	return s
}

// consolidates removes some of the nodes if the thresholds allow it.
func (h *hours) consolidates() {
	s := h.readSnapshot()
	r, list := thresholds.New(&s), candidate.FindAll(&s, h.stock)
	var chosen []*candidate.Candidate
	for i := range list {
		c := &list[i]
		if !h.leaving[c.Index] && rapid.Bool().Draw(h.T, "goes") && r.CheckNode(c).IsNone() {
			chosen = append(chosen, c)
		}
	}
	if no, _ := r.CheckSet(chosen); !no.IsNone() {
		return
	}
	for _, c := range chosen {
		h.leaving[c.Index], h.decided[c.Index] = true, decision{h.now, h.most()}
	}
}

// most returns how many pods may be moved: a number, or a part of the desired pods, rounded up.
func (h *hours) most() int {
	if percent, ok := strings.CutSuffix(h.limit, "%"); ok {
		part, _ := strconv.Atoi(percent)
		return (h.wanted*part + 99) / 100
	}
	most, _ := strconv.Atoi(h.limit)
	return most
}

// simulateEvent simulates a random action of users, AWS or the workload itself.
func (h *hours) simulateEvent() {
	switch rapid.IntRange(0, 15).Draw(h.T, "event") {
	case 0:
		if node := rapid.IntRange(0, len(h.leaving)-1).Draw(h.T, "AWS takes"); !h.leaving[node] {
			h.leaving[node] = true
		}
	case 1:
		h.createPod(h.now)
		h.wanted++
	case 2:
		h.shrinks()
	case 3:
		h.ends()
	case 4:
		h.keepNode(rapid.IntRange(0, len(h.leaving)-1).Draw(h.T, "is rolled back"))
	default:
		h.consolidates()
	}
	h.drains()
}

// ends completes a random pod of a Job, even a terminating one.
func (h *hours) ends() {
	if h.kind != "Job" || len(h.pods) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.pods)-1).Draw(h.T, "succeeds")
	if pod := h.pods[i]; h.now.Sub(pod.created) < time.Hour || !pod.ends.IsZero() {
		h.fewer = append(h.fewer, h.now)
	}
	h.pods, h.wanted = slices.Delete(h.pods, i, i+1), h.wanted-1
}

// hour returns the number of moves in the hour that ends with the given move, and the limit when
// the last of them was decided.
func (h *hours) hour(last move) (moved, most int) {
	var latest time.Time
	for _, m := range h.moved {
		if m.at.After(last.at) || !m.at.After(last.at.Add(-time.Hour)) {
			continue
		}
		if moved++; !m.decided.Before(latest) {
			latest, most = m.decided, m.most
		}
	}
	return moved, most
}

// In any hour, consolidation moves at most as many pods of a workload as the limit allows, plus one
// for each young pod that was scaled down or completed. This holds regardless of what users and AWS
// do to the workload, and however slowly nodes drain and pods end. No state is stored except the
// pods.
func TestNoHourMovesMore(t *testing.T) {
	stock := fixture.Stock(fixture.Snapshot(fixture.Pool()))
	bound := 0
	rapid.Check(t, func(t *rapid.T) {
		h := &hours{
			T: t, kind: rapid.SampledFrom([]string{"ReplicaSet", "StatefulSet", "Job"}).Draw(t, "kind"), stock: stock, now: fixture.Taken,
			limit:   rapid.SampledFrom([]string{"1", "2", "3", "4", "10%", "34%", "50%"}).Draw(t, "limit"),
			leaving: make([]bool, 6), decided: map[int]decision{},
		}
		for range rapid.IntRange(2, 8).Draw(t, "pods") {
			h.createPod(h.now.Add(-day))
			h.wanted++
		}
		for range rapid.IntRange(10, 60).Draw(t, "events") {
			h.pass()
			h.simulateEvent()
		}
		for _, last := range h.moved {
			fewer := 0
			for _, at := range h.fewer {
				if !at.After(last.at) && at.After(last.at.Add(-time.Hour)) {
					fewer++
				}
			}
			moved, most := h.hour(last)
			if moved > most+fewer {
				t.Fatalf("%d pods of a %s move in the hour before %s, the limit is %d plus %d removed pods", moved, h.kind, last.at, most, fewer)
			}
			if moved == most && fewer == 0 && most > 1 {
				bound++
			}
		}
	})
	if bound < 5 {
		t.Errorf("the limit of two pods or more was reached only %d times, want at least 5", bound)
	}
}
