package solver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// FirstSteps returns the cost of the first effort for a batch, including its retries, in packer steps.
func FirstSteps(batch planning.Batch, stock instancetypes.InstanceTypes) int {
	var w *state
	return planWithEffort(batchTask{&batch, stock}, effort{}, retryBudget, &w).steps
}

// FirstEffort is SolveWithTypes without the further efforts for unplaced pods.
func FirstEffort(batch planning.Batch, stock instancetypes.InstanceTypes) planning.Result {
	var w *state
	out := addStaticNodes(planWithEffort(batchTask{&batch, stock}, effort{}, retryBudget, &w).Result, w.planStaticNodes(stock, planning.FindShortfalls(batch.Snapshot), nil))
	out.OverlayStatuses = stock.OverlayStatuses
	return out
}

// Equivalent returns the batch that gives the same result as SimulateRemoval before any commit. It
// adds classes without pods for the pods of other nodes, because their requests and labels decide
// which resources are counted and which variants a pool has.
func Equivalent(s planning.Snapshot, nodes ...int) planning.Batch {
	s.Nodes = maskUnreadyNodes(s.Nodes)
	batch := planning.Batch{Snapshot: s}
	var all podKinds
	moved := map[*podKind]int{}
	for i := range s.Nodes {
		node := &s.Nodes[i]
		going := node.MarkedForDeletion
		node.MarkedForDeletion = going || slices.Contains(nodes, i)
		for j := range node.Pods {
			kind := all.findKind(&node.Pods[j].Spec)
			pods := node.Pods[j].ReschedulablePods()
			if going || !node.MarkedForDeletion || len(pods) == 0 {
				continue
			}
			at, ok := moved[kind]
			if !ok {
				at, moved[kind] = len(batch.Pending), len(batch.Pending)
				batch.Pending = append(batch.Pending, planning.PodClass{Spec: *kind.spec})
			}
			for _, pod := range pods {
				pod.Node = node.Name
				batch.Pending[at].Pods = append(batch.Pending[at].Pods, pod)
			}
		}
	}
	for i := range batch.Pending {
		slices.SortStableFunc(batch.Pending[i].Pods, func(a, b planning.PodRef) int { return comparePods([]planning.PodRef{a}, []planning.PodRef{b}) })
	}
	for _, kind := range all.all {
		ghost := planning.PodClass{Spec: *kind.spec}
		ghost.Spec.Requests = maps.Clone(ghost.Spec.Requests)
		ghost.Spec.Requests[corev1.ResourceCPU] = resource.MustParse("-1")
		batch.Pending = append(batch.Pending, ghost)
	}
	return batch
}

// ConvertQuantity converts a quantity to an amount and back.
func ConvertQuantity(name corev1.ResourceName, q resource.Quantity) (int64, resource.Quantity) {
	amount := toInteger(name, q)
	return amount, toQuantity(name, amount)
}

// FitCount is amounts.fitCount.
func FitCount(requests, room []int64, limit int) int { return amounts(requests).fitCount(room, limit) }

// StaleSets returns the keys of the cached feasible sets whose nodes are not those of a new computation, and how many
// sets are cached.
func (s *Simulation) StaleSets() (stale []string, cached int) {
	w := s.baseline.state
	var check func(r *feasibleSet)
	check = func(r *feasibleSet) {
		cached++
		if nodes := w.nodesFor(r); !slices.Equal(nodes, r.nodes) || r.nonEmpty != (w.isBuyable(r) || nodes.Len() > 0) {
			stale = append(stale, r.key)
		}
		for _, parts := range r.narrowedSets {
			for _, part := range parts {
				check(part)
			}
		}
	}
	for _, r := range w.feasibleSets {
		check(r)
	}
	return stale, cached
}
