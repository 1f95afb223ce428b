package consolidation

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Floor tells without a simulation that a node will not be replaced for less. Of all
// rules it looks at cores and memory alone, and so it is too hopeful rather than too
// little: what it gives up is not worth trying. A better way to fill rooms than by
// size might exist; a node that only this could remove stays.
type Floor struct {
	// sold are the types that any pool may buy, the cheapest first.
	sold []goods
	// rooms are what the nodes that stay have left, by their places in the snapshot;
	// left is for one question.
	rooms, left []space
}

// space is cores and bytes.
type space struct{ cores, bytes float64 }

func (s space) holds(t space) bool { return s.cores >= t.cores && s.bytes >= t.bytes }

// crowd are so many pods of one size.
type crowd struct {
	space
	count int
}

// NewFloor looks at a snapshot and at what EC2 sells.
func NewFloor(s *planning.Snapshot, stock instancetypes.Stock) *Floor {
	out := &Floor{rooms: make([]space, len(s.Nodes)), left: make([]space, len(s.Nodes))}
	for i := range s.NodePools {
		if pool := &s.NodePools[i]; pool.Spec.Template.Spec.NodeClassRef != nil {
			out.sold = append(out.sold, shelf(pool, stock)...)
		}
	}
	slices.SortFunc(out.sold, func(a, b goods) int { return cmp.Compare(a.price, b.price) })
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Going && n.Initialized && n.Ready {
			has, used := spaceOf(n.Allocatable), spaceOf(n.Used)
			out.rooms[i] = space{has.cores - used.cores, has.bytes - used.bytes}
		}
	}
	return out
}

func spaceOf(list corev1.ResourceList) space {
	return space{amount(list, corev1.ResourceCPU), amount(list, corev1.ResourceMemory)}
}

// Objection is that what finds no room elsewhere, when the pods of a node are put
// where there is any, the largest first, needs a node that costs no less.
func (f *Floor) Objection(c *candidate.Candidate) candidate.Objection {
	lost := f.homeless(c)
	if lost == (space{}) {
		return candidate.Objection{}
	}
	for _, g := range f.sold {
		if g.price >= c.Price {
			break
		}
		if (space{g.cores, g.bytes}).holds(lost) {
			return candidate.Objection{}
		}
	}
	return candidate.Objection{Rule: RuleNoSaving, Detail: fmt.Sprintf(
		"there is no room elsewhere for %.2f cores and %.1f GiB of its pods, and no node that holds these is cheaper", lost.cores, lost.bytes/(1<<30))}
}

// homeless is what the pods of a node take that find no room on others.
func (f *Floor) homeless(c *candidate.Candidate) (lost space) {
	var crowds []crowd
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		if count := len(class.Rescheduled()); count > 0 {
			crowds = append(crowds, crowd{spaceOf(class.Spec.Requests), count})
		}
	}
	slices.SortStableFunc(crowds, func(a, b crowd) int {
		return cmp.Or(cmp.Compare(b.cores, a.cores), cmp.Compare(b.bytes, a.bytes))
	})
	copy(f.left, f.rooms)
	f.left[c.Index] = space{}
	for _, w := range crowds {
		for i := range f.left {
			room := &f.left[i]
			for w.count > 0 && *room != (space{}) && room.holds(w.space) {
				room.cores, room.bytes, w.count = room.cores-w.cores, room.bytes-w.bytes, w.count-1
			}
		}
		lost.cores, lost.bytes = lost.cores+float64(w.count)*w.cores, lost.bytes+float64(w.count)*w.bytes
	}
	return lost
}
