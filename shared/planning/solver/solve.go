package solver

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Solve plans a batch. It is a pure function: the same batch and catalogue give
// the same result, and it never fails as a whole. A class of pods that cannot be
// planned, even for a fault of ours, is among the unplaced with the reason.
func Solve(batch planning.Batch, cat catalog.Catalogue) planning.Result {
	return SolveWithTypes(batch, instancetypes.New(batch.Snapshot, cat))
}

// SolveWithTypes is Solve with the instance types worked out already.
func SolveWithTypes(batch planning.Batch, stock instancetypes.InstanceTypes) planning.Result {
	result := isolate(batch, func(b *planning.Batch) (planning.Result, *broken) { return attempt(b, stock) })
	result.OverlayStatuses = stock.OverlayStatuses
	return result
}

// faultsMax is how many classes are set aside one by one for a fault of ours,
// before everything is.
const faultsMax = 16

// isolate plans without the classes that cannot be planned for a fault of ours.
func isolate(batch planning.Batch, attempt func(*planning.Batch) (planning.Result, *broken)) planning.Result {
	var aside []planning.UnplacedPods
	for {
		result, fault := attempt(&batch)
		if fault == nil {
			result.Unplaced = append(aside, result.Unplaced...)
			return result
		}
		if fault.spec == nil || len(aside) == faultsMax {
			for i := range batch.Pending {
				aside = append(aside, fault.unplaced(&batch.Pending[i]))
			}
			return planning.Result{Unplaced: aside}
		}
		rest := make([]planning.PodClass, 0, len(batch.Pending))
		for i := range batch.Pending {
			if class := &batch.Pending[i]; &class.Spec == fault.spec {
				aside = append(aside, fault.unplaced(class))
			} else {
				rest = append(rest, *class)
			}
		}
		batch.Pending = rest
	}
}

// broken is a panic while planning, and the class that it was about, if any.
type broken struct {
	spec  *planning.PodSpec
	cause any
}

// blame finds the class that was being looked at.
func blame(w *world, cause any) *broken {
	out := &broken{cause: cause}
	if w != nil && w.at != nil {
		out.spec = w.at.spec
	}
	return out
}

func (b *broken) unplaced(class *planning.PodClass) planning.UnplacedPods {
	return planning.UnplacedPods{Namespace: class.Spec.Namespace, Pods: class.Pods, Rejections: []planning.Rejection{{Rule: planning.RulePod, Detail: fmt.Sprintf("planning for it failed: %v", b.cause)}}}
}

// attempt plans everything, and again with more effort if pods were left out. A
// panic is a fault of ours and must not cost the other pods their nodes.
func attempt(batch *planning.Batch, stock instancetypes.InstanceTypes) (result planning.Result, fault *broken) {
	var w *world
	defer func() {
		if cause := recover(); cause != nil {
			fault = blame(w, cause)
		}
	}()
	q := batchTask{batch, stock}
	best := plan(q, effort{}, afterthoughts, &w)
	first, left := w, int(afterthoughts)
	for i := 0; i < len(efforts) && best.wanting && left > 0; i++ {
		if !efforts[i].due(w, best.Result) {
			continue
		}
		other := plan(q, efforts[i], left, &w)
		if left -= other.steps; unplaced(other.Result) < unplaced(best.Result) && (!other.askew || best.askew) {
			best = other
		}
	}
	return addNodes(best.Result, first.staticNodes(stock, planning.FindShortfalls(batch.Snapshot), best.Nodes)), nil
}

// addNodes adds nodes that no pod asked for.
func addNodes(r planning.Result, nodes []planning.PlannedNode) planning.Result {
	for i := range nodes {
		r.PricePerHour += nodes[i].PricePerHour
		r.BoundPerHour += nodes[i].PricePerHour
	}
	r.Nodes = append(r.Nodes, nodes...)
	return r
}

func (w *world) solve(q task, order func(a, b *one) int) *rounds {
	q.read(w)
	w.addTopology()
	r := newRounds(w)
	if order != nil {
		r.single(order)
	} else {
		r.run()
	}
	return r
}

func unplaced(r planning.Result) int {
	n := 0
	for _, u := range r.Unplaced {
		n += len(u.Pods)
	}
	return n
}
