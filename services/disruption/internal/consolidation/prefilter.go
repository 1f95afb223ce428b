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

// Prefilter tells without a simulation that a node will not be replaced for less. Of all
// rules it looks at cores and memory alone, and so it is too hopeful rather than too
// little: what it gives up is not worth trying. A better way to fill rooms than by
// size might exist; a node that only this could remove stays.
type Prefilter struct {
	// types are the types that any pool may buy, the cheapest first.
	types []pricedType
	// free are what the nodes that stay have left, by their places in the snapshot;
	// left is for one question.
	free, scratch []resources
}

// resources is cores and bytes.
type resources struct{ cores, bytes float64 }

func (s resources) contains(t resources) bool { return s.cores >= t.cores && s.bytes >= t.bytes }

// sizedPods are so many pods of one size.
type sizedPods struct {
	resources
	count int
}

// NewPrefilter looks at a snapshot and at what EC2 sells.
func NewPrefilter(s *planning.Snapshot, stock instancetypes.Stock) *Prefilter {
	out := &Prefilter{free: make([]resources, len(s.Nodes)), scratch: make([]resources, len(s.Nodes))}
	for i := range s.NodePools {
		if pool := &s.NodePools[i]; pool.Spec.Template.Spec.NodeClassRef != nil {
			out.types = append(out.types, listTypes(pool, stock)...)
		}
	}
	slices.SortFunc(out.types, func(a, b pricedType) int { return cmp.Compare(a.price, b.price) })
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Going && n.Initialized && n.Ready {
			has, used := resourcesOf(n.Allocatable), resourcesOf(n.Used)
			out.free[i] = resources{has.cores - used.cores, has.bytes - used.bytes}
		}
	}
	return out
}

func resourcesOf(list corev1.ResourceList) resources {
	return resources{amountOf(list, corev1.ResourceCPU), amountOf(list, corev1.ResourceMemory)}
}

// CheckNode is that what finds no room elsewhere, when the pods of a node are put
// where there is any, the largest first, needs a node that costs no less.
func (f *Prefilter) CheckNode(c *candidate.Candidate) candidate.Objection {
	lost := f.unplacedRequests(c)
	if lost == (resources{}) {
		return candidate.Objection{}
	}
	for _, g := range f.types {
		if g.price >= c.Price {
			break
		}
		if (resources{g.cores, g.bytes}).contains(lost) {
			return candidate.Objection{}
		}
	}
	return candidate.Objection{Rule: RuleNoSaving, Detail: fmt.Sprintf(
		"there is no room elsewhere for %.2f cores and %.1f GiB of its pods, and no node that holds these is cheaper", lost.cores, lost.bytes/(1<<30))}
}

// unplacedRequests is what the pods of a node take that find no room on others.
func (f *Prefilter) unplacedRequests(c *candidate.Candidate) (lost resources) {
	var crowds []sizedPods
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		if count := len(class.Rescheduled()); count > 0 {
			crowds = append(crowds, sizedPods{resourcesOf(class.Spec.Requests), count})
		}
	}
	slices.SortStableFunc(crowds, func(a, b sizedPods) int {
		return cmp.Or(cmp.Compare(b.cores, a.cores), cmp.Compare(b.bytes, a.bytes))
	})
	copy(f.scratch, f.free)
	f.scratch[c.Index] = resources{}
	for _, w := range crowds {
		for i := range f.scratch {
			room := &f.scratch[i]
			for w.count > 0 && *room != (resources{}) && room.contains(w.resources) {
				room.cores, room.bytes, w.count = room.cores-w.cores, room.bytes-w.bytes, w.count-1
			}
		}
		lost.cores, lost.bytes = lost.cores+float64(w.count)*w.cores, lost.bytes+float64(w.count)*w.bytes
	}
	return lost
}
