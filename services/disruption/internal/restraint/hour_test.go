package restraint_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/services/disruption/internal/restraint"
	"github.com/joist-autoscaler/joist/shared/policy"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// lasting is a pod over time.
type lasting struct {
	node    int
	created time.Time
	// ends is when a pod is gone that was asked to end; zero while nobody asked.
	ends time.Time
}

// hours is a workload of one kind that people and AWS disturb, on some nodes.
type hours struct {
	*rapid.T
	kind  string
	nodes int
	stock scheduling.Stock
	now   time.Time
	pods  []lasting
	// moved is when consolidation evicted, and fewer when somebody wanted a pod less.
	moved, fewer []time.Time
}

func (h *hours) comes(at time.Time) {
	h.pods = append(h.pods, lasting{node: rapid.IntRange(0, h.nodes-1).Draw(h.T, "lands on"), created: at})
}

// pass lets time pass. What is gone makes room for what could not come before.
func (h *hours) pass() {
	h.now = h.now.Add(time.Duration(rapid.IntRange(1, 25).Draw(h.T, "minutes")) * time.Minute)
	gone := func(p lasting) bool { return !p.ends.IsZero() && !p.ends.After(h.now) }
	for _, p := range slices.Clone(h.pods) {
		if gone(p) && h.kind != "ReplicaSet" {
			h.comes(p.ends)
		}
	}
	h.pods = slices.DeleteFunc(h.pods, gone)
}

// evicts asks the pods of nodes to end, and gives how many there were.
func (h *hours) evicts(nodes ...int) (count int) {
	ends := h.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(h.T, "grace")) * time.Minute)
	for i := range h.pods {
		if !h.pods[i].ends.IsZero() || !slices.Contains(nodes, h.pods[i].node) {
			continue
		}
		count++
		if h.pods[i].ends = ends; h.kind == "ReplicaSet" {
			h.comes(h.now)
		}
	}
	return count
}

// shrinks takes one pod away. The latest goes first, as with a Deployment, which forgets
// most.
func (h *hours) shrinks() {
	for i, pod := range slices.Backward(h.pods) {
		if pod.ends.IsZero() {
			h.pods, h.fewer = slices.Delete(h.pods, i, i+1), append(h.fewer, h.now)
			return
		}
	}
}

// looks is what disruption sees.
func (h *hours) looks(limit string) scheduling.Snapshot {
	nodes := make([]scheduling.Node, h.nodes)
	for i := range nodes {
		class := pods("web", 0, 0, func(c *scheduling.PodClass) { c.Spec.OwnerKind = h.kind })
		for k, p := range h.pods {
			if p.node == i {
				class.Pods = append(class.Pods, scheduling.PodRef{Name: strconv.Itoa(k), UID: strconv.Itoa(k), Workload: "web", Created: p.created, Going: !p.ends.IsZero()})
			}
		}
		nodes[i] = node(strconv.Itoa(i), class)
	}
	s := fixture.Snapshot(fixture.Pool(), nodes...)
	s.Taken = h.now
	s.NodePools[0].Annotations = map[string]string{policy.EvictionsPerHour: limit}
	return s
}

// consolidates empties some of the nodes, if it may.
func (h *hours) consolidates(limit string) {
	s := h.looks(limit)
	r, list := restraint.New(&s), candidate.Survey(&s, h.stock)
	var nodes []int
	var chosen []*candidate.Candidate
	for i := range list {
		c := &list[i]
		if rapid.Bool().Draw(h.T, "goes") && r.Node(c).None() {
			chosen, nodes = append(chosen, c), append(nodes, c.Index)
		}
	}
	if no, _ := r.Set(chosen); !no.None() {
		return
	}
	for range h.evicts(nodes...) {
		h.moved = append(h.moved, h.now)
	}
}

// Whatever people and AWS do to a workload meanwhile, and however slowly its pods end,
// consolidation moves no more of its pods in any hour than it may, and one for each that
// somebody wanted less. Nothing is remembered but the pods.
func TestNoHourMovesMore(t *testing.T) {
	stock := fixture.Stock(fixture.Snapshot(fixture.Pool()))
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "limit")
		h := &hours{T: t, kind: rapid.SampledFrom([]string{"ReplicaSet", "StatefulSet", "Job"}).Draw(t, "kind"), nodes: 4, stock: stock, now: fixture.Taken}
		for range rapid.IntRange(2, 8).Draw(t, "pods") {
			h.comes(h.now.Add(-day))
		}
		for range rapid.IntRange(10, 60).Draw(t, "events") {
			h.pass()
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				h.evicts(rapid.IntRange(0, h.nodes-1).Draw(t, "AWS takes"))
			case 1:
				h.comes(h.now)
			case 2:
				h.shrinks()
			default:
				h.consolidates(strconv.Itoa(most))
			}
		}
		for _, at := range h.moved {
			within := func(times []time.Time) (n int) {
				for _, one := range times {
					if !one.After(at) && one.After(at.Add(-time.Hour)) {
						n++
					}
				}
				return n
			}
			if moved, fewer := within(h.moved), within(h.fewer); moved > most+fewer {
				t.Fatalf("%d pods of a %s move in the hour before %s, %d may, and %d less were wanted", moved, h.kind, at, most, fewer)
			}
		}
	})
}
