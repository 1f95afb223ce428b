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

// Prefilter finds nodes that cannot be replaced for less, without a simulation. It considers only
// CPU and memory and ignores all other rules, so it rarely rejects a node that could be
// consolidated: only a node whose pods fit elsewhere if placed in another order than by size.
type Prefilter struct {
	// types are the instance types that any NodePool may launch, the cheapest first.
	types []pricedType
	// free is the free capacity of the nodes that stay, by their indexes in the snapshot; scratch
	// is a copy for one call.
	free, scratch []resources
}

// resources are cores and bytes of memory.
type resources struct{ cores, bytes float64 }

func (s resources) contains(t resources) bool { return s.cores >= t.cores && s.bytes >= t.bytes }

// sizedPods are pods with equal requests.
type sizedPods struct {
	resources
	count int
}

// NewPrefilter reads the free capacity of a snapshot's nodes and the instance types.
func NewPrefilter(s *planning.Snapshot, stock instancetypes.InstanceTypes) *Prefilter {
	out := &Prefilter{free: make([]resources, len(s.Nodes)), scratch: make([]resources, len(s.Nodes))}
	for i := range s.NodePools {
		if pool := &s.NodePools[i]; pool.Spec.Template.Spec.NodeClassRef != nil {
			out.types = append(out.types, listTypes(pool, stock)...)
		}
	}
	slices.SortFunc(out.types, func(a, b pricedType) int { return cmp.Compare(a.price, b.price) })
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.MarkedForDeletion && n.Initialized && n.Ready {
			has, used := resourcesOf(n.Allocatable), resourcesOf(n.Used)
			out.free[i] = resources{has.cores - used.cores, has.bytes - used.bytes}
		}
	}
	return out
}

func resourcesOf(list corev1.ResourceList) resources {
	return resources{amountOf(list, corev1.ResourceCPU), amountOf(list, corev1.ResourceMemory)}
}

// CheckNode places the pods of a node into the free capacity of others, the largest first. It
// objects if no cheaper instance type holds the remaining pods.
func (f *Prefilter) CheckNode(c *candidate.Candidate) candidate.Objection {
	unplaced := f.unplacedRequests(c)
	if unplaced == (resources{}) {
		return candidate.Objection{}
	}
	for _, g := range f.types {
		if g.price >= c.Price {
			break
		}
		if (resources{g.cores, g.bytes}).contains(unplaced) {
			return candidate.Objection{}
		}
	}
	return candidate.Objection{Rule: RuleNoSaving, Detail: fmt.Sprintf(
		"%.2f cores and %.1f GiB of its pods do not fit on other nodes, and no cheaper node holds them", unplaced.cores, unplaced.bytes/(1<<30))}
}

// unplacedRequests returns the requests of the node's pods that do not fit on other nodes.
func (f *Prefilter) unplacedRequests(c *candidate.Candidate) (unplaced resources) {
	var groups []sizedPods
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		if count := len(class.ReschedulablePods()); count > 0 {
			groups = append(groups, sizedPods{resourcesOf(class.Spec.Requests), count})
		}
	}
	slices.SortStableFunc(groups, func(a, b sizedPods) int {
		return cmp.Or(cmp.Compare(b.cores, a.cores), cmp.Compare(b.bytes, a.bytes))
	})
	copy(f.scratch, f.free)
	f.scratch[c.Index] = resources{}
	for _, w := range groups {
		for i := range f.scratch {
			free := &f.scratch[i]
			for w.count > 0 && *free != (resources{}) && free.contains(w.resources) {
				free.cores, free.bytes, w.count = free.cores-w.cores, free.bytes-w.bytes, w.count-1
			}
		}
		unplaced.cores, unplaced.bytes = unplaced.cores+float64(w.count)*w.cores, unplaced.bytes+float64(w.count)*w.bytes
	}
	return unplaced
}
