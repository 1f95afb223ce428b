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
	// initial is the free capacity of the nodes that stay, by their indexes in the snapshot, and free is
	// the same without the pods that a call placed. A call undoes its changes.
	initial, free []resources
	// most has, for each blockSize nodes, the most cores and the most bytes that one of them has free
	// initially. Most blocks have no node with enough, so that their nodes are not compared.
	most []resources
	// fitting are the nodes that initially hold a pod, by its requests. Calls do not compare the others again.
	fitting map[resources]*fittingNodes
	// compared counts the comparisons with a node or a block.
	compared int
	// used are the changes of a call.
	used []usedCapacity
}

// fittingNodes are the first nodes that hold a pod, as many as calls needed.
type fittingNodes struct {
	indexes []int
	// next is the first node that is not compared yet.
	next int
}

// usedCapacity is what a node had free before a pod was placed there.
type usedCapacity struct {
	node   int
	before resources
}

// blockSize is the number of nodes whose free capacity is compared at once.
const blockSize = 32

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
	out := &Prefilter{initial: make([]resources, len(s.Nodes)), fitting: map[resources]*fittingNodes{}}
	for i := range s.NodePools {
		if pool := &s.NodePools[i]; pool.Spec.Template.Spec.NodeClassRef != nil {
			out.types = append(out.types, listTypes(pool, stock)...)
		}
	}
	slices.SortFunc(out.types, func(a, b pricedType) int { return cmp.Compare(a.price, b.price) })
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.MarkedForDeletion && n.Initialized && n.Ready {
			has, used := resourcesOf(n.Allocatable), resourcesOf(n.Used)
			out.initial[i] = resources{has.cores - used.cores, has.bytes - used.bytes}
		}
	}
	out.free = slices.Clone(out.initial)
	for block := range slices.Chunk(out.initial, blockSize) {
		var most resources
		for _, free := range block {
			most = resources{max(most.cores, free.cores), max(most.bytes, free.bytes)}
		}
		out.most = append(out.most, most)
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
	f.use(c.Index, resources{})
	for _, w := range groups {
		count := f.place(w)
		unplaced.cores, unplaced.bytes = unplaced.cores+float64(count)*w.cores, unplaced.bytes+float64(count)*w.bytes
	}
	for _, u := range slices.Backward(f.used) {
		f.free[u.node] = u.before
	}
	f.used = f.used[:0]
	return unplaced
}

// place places pods on the first nodes that hold them, and returns how many remain.
func (f *Prefilter) place(w sizedPods) int {
	known := f.fitting[w.resources]
	if known == nil {
		known = &fittingNodes{}
		f.fitting[w.resources] = known
	}
	for k := 0; w.count > 0 && f.findFitting(known, w.resources, k); k++ {
		i := known.indexes[k]
		f.compared++
		for free := f.free[i]; w.count > 0 && free != (resources{}) && free.contains(w.resources); free = f.free[i] {
			f.use(i, resources{free.cores - w.cores, free.bytes - w.bytes})
			w.count--
		}
	}
	return w.count
}

// findFitting extends the list of nodes that hold a pod to more than k nodes. It returns false if there are
// not so many.
func (f *Prefilter) findFitting(known *fittingNodes, w resources, k int) bool {
	for len(known.indexes) <= k && known.next < len(f.initial) {
		i := known.next
		f.compared++
		if i%blockSize == 0 && !f.most[i/blockSize].contains(w) {
			known.next += blockSize
			continue
		}
		if known.next++; f.initial[i] != (resources{}) && f.initial[i].contains(w) {
			known.indexes = append(known.indexes, i)
		}
	}
	return len(known.indexes) > k
}

// use sets the free capacity of a node until the end of the call.
func (f *Prefilter) use(node int, free resources) {
	f.used = append(f.used, usedCapacity{node, f.free[node]})
	f.free[node] = free
}
