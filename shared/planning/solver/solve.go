package solver

import (
	"fmt"
	"slices"

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
	describe := func(class *planning.PodClass) (*planning.PodSpec, []planning.PodRef) { return &class.Spec, class.Pods }
	result := isolateFailures(batch.Pending, describe, func(pending []planning.PodClass) (planning.Result, *planningFailure) {
		batch.Pending = pending
		return planBatch(&batch, stock)
	})
	result.OverlayStatuses = stock.OverlayStatuses
	return result
}

// maxFailures is how many classes may fail with a panic before all remaining pods are reported
// unplaced.
const maxFailures = 16

// isolateFailures calls attempt again without each class that made it panic. describe returns the spec and the pods of a
// class.
func isolateFailures[T any](classes []T, describe func(*T) (*planning.PodSpec, []planning.PodRef), attempt func([]T) (planning.Result, *planningFailure)) planning.Result {
	var aside []planning.UnplacedPods
	for {
		result, fault := attempt(classes)
		if fault == nil {
			result.Unplaced = append(aside, result.Unplaced...)
			return result
		}
		failed := noIndex
		for i := range classes {
			if spec, _ := describe(&classes[i]); spec == fault.spec {
				failed = i
			}
		}
		if failed < 0 || len(aside) == maxFailures {
			for i := range classes {
				aside = append(aside, fault.unplacedPods(describe(&classes[i])))
			}
			return planning.Result{Unplaced: aside}
		}
		aside = append(aside, fault.unplacedPods(describe(&classes[failed])))
		classes = slices.Concat(classes[:failed], classes[failed+1:])
	}
}

// planningFailure is a panic during planning, and the class that was in work, if any.
type planningFailure struct {
	spec  *planning.PodSpec
	cause any
}

// recoverFailure recovers from a panic, and sets the failure with the class that was in work. It must be deferred.
func recoverFailure(w **state, fault **planningFailure) {
	cause := recover()
	if cause == nil {
		return
	}
	*fault = &planningFailure{cause: cause}
	if *w != nil && (*w).currentClass != nil {
		(*fault).spec = (*w).currentClass.spec
	}
}

func (b *planningFailure) unplacedPods(spec *planning.PodSpec, pods []planning.PodRef) planning.UnplacedPods {
	return planning.UnplacedPods{Namespace: spec.Namespace, Pods: pods, Rejections: []planning.Rejection{{Rule: planning.RulePod, Detail: fmt.Sprintf("the planner failed for this pod: %v", b.cause)}}}
}

// planBatch plans a batch. While pods stay unplaced that could be placed, it tries further efforts and
// keeps the best plan. It recovers from panics, so that one class cannot block the nodes of the other
// pods.
func planBatch(batch *planning.Batch, stock instancetypes.InstanceTypes) (result planning.Result, fault *planningFailure) {
	var w *state
	defer recoverFailure(&w, &fault)
	q := batchTask{batch, stock}
	best := planWithEffort(q, effort{}, retryBudget, &w)
	first, left := w, int(retryBudget)
	for i := 0; i < len(efforts) && best.leavesPlaceable && left > 0; i++ {
		if !efforts[i].isWorthTrying(w, best.Result) {
			continue
		}
		other := planWithEffort(q, efforts[i], left, &w)
		if left -= other.steps; countUnplaced(other.Result) < countUnplaced(best.Result) && (!other.breaksTopology || best.breaksTopology) {
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
	r.placeClaimPods(false)
	if order != nil {
		r.placeSingly(order)
	} else {
		r.runRounds()
	}
	r.placeClaimPods(true) // Pods that need others on their node.
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
