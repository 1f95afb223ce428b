package solver

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Solve plans a batch. It is a pure function: the same batch and catalogue give the same result. It
// never fails as a whole: if planning a class panics, its pods are unplaced with that reason.
func Solve(batch planning.Batch, cat catalog.Catalogue) planning.Result {
	return SolveWithTypes(batch, instancetypes.New(batch.Snapshot, cat))
}

// SolveWithTypes is Solve with instance types that are already computed.
func SolveWithTypes(batch planning.Batch, stock instancetypes.InstanceTypes) planning.Result {
	result := isolateFailures(batch, func(b *planning.Batch) (planning.Result, *planningFailure) { return planBatch(b, stock) })
	result.OverlayStatuses = stock.OverlayStatuses
	return result
}

// maxFailures is how many classes may fail with a panic before all remaining pods are reported
// unplaced.
const maxFailures = 16

// isolateFailures calls attempt again without each class that made it panic.
func isolateFailures(batch planning.Batch, attempt func(*planning.Batch) (planning.Result, *planningFailure)) planning.Result {
	var aside []planning.UnplacedPods
	for {
		result, fault := attempt(&batch)
		if fault == nil {
			result.Unplaced = append(aside, result.Unplaced...)
			return result
		}
		if fault.spec == nil || len(aside) == maxFailures {
			for i := range batch.Pending {
				aside = append(aside, fault.unplacedPods(&batch.Pending[i]))
			}
			return planning.Result{Unplaced: aside}
		}
		rest := make([]planning.PodClass, 0, len(batch.Pending))
		for i := range batch.Pending {
			if class := &batch.Pending[i]; &class.Spec == fault.spec {
				aside = append(aside, fault.unplacedPods(class))
			} else {
				rest = append(rest, *class)
			}
		}
		batch.Pending = rest
	}
}

// planningFailure is a panic during planning, and the class that was in work, if any.
type planningFailure struct {
	spec  *planning.PodSpec
	cause any
}

// newFailure returns the failure with the class that was in work.
func newFailure(w *state, cause any) *planningFailure {
	out := &planningFailure{cause: cause}
	if w != nil && w.currentClass != nil {
		out.spec = w.currentClass.spec
	}
	return out
}

func (b *planningFailure) unplacedPods(class *planning.PodClass) planning.UnplacedPods {
	return planning.UnplacedPods{Namespace: class.Spec.Namespace, Pods: class.Pods, Rejections: []planning.Rejection{{Rule: planning.RulePod, Detail: fmt.Sprintf("the planner failed for this pod: %v", b.cause)}}}
}

// planBatch plans a batch. While pods stay unplaced that could be placed, it tries further efforts and
// keeps the best plan. It recovers from panics, so that one class cannot block the nodes of the other
// pods.
func planBatch(batch *planning.Batch, stock instancetypes.InstanceTypes) (result planning.Result, fault *planningFailure) {
	var w *state
	defer func() {
		if cause := recover(); cause != nil {
			fault = newFailure(w, cause)
		}
	}()
	q := batchTask{batch, stock}
	best := planWithEffort(q, effort{}, retryBudget, &w)
	first, left := w, int(retryBudget)
	for i := 0; i < len(efforts) && best.leavesPlaceable && left > 0; i++ {
		if !efforts[i].isWorthTrying(w, best.Result) {
			continue
		}
		other := planWithEffort(q, efforts[i], left, &w)
		if left -= other.steps; countUnplaced(other.Result) < countUnplaced(best.Result) && (!other.breaksSpread || best.breaksSpread) {
			best = other
		}
	}
	return addStaticNodes(best.Result, first.planStaticNodes(stock, planning.FindShortfalls(batch.Snapshot), best.Nodes)), nil
}

// addStaticNodes adds the nodes of static NodePools to the result.
func addStaticNodes(r planning.Result, nodes []planning.PlannedNode) planning.Result {
	for i := range nodes {
		r.PricePerHour += nodes[i].PricePerHour
		r.BoundPerHour += nodes[i].PricePerHour
	}
	r.Nodes = append(r.Nodes, nodes...)
	return r
}

func (w *state) solveTask(q task, order func(a, b *queuedPod) int) *rounds {
	q.readClasses(w)
	w.addTopology()
	r := newRounds(w)
	r.pinExpectedPods()
	r.placeClaimPods()
	if order != nil {
		r.placeSingly(order)
	} else {
		r.runRounds()
	}
	r.placeClaimPods() // Pods that need others on their node.
	r.packer.Finish()
	return r
}

func countUnplaced(r planning.Result) int {
	n := 0
	for _, u := range r.Unplaced {
		n += len(u.Pods)
	}
	return n
}
