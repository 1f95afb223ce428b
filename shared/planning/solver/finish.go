package solver

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// maxTypes is how many instance types a claim names, the cheapest ones.
const maxTypes = 600

// launchTypes is how many instance types one launch chooses from.
const launchTypes = 60

func (r *rounds) result() planning.Result {
	out := planning.Result{Partial: r.packer.Spent()}
	if r.w.removal == nil {
		// Of nodes that go, many sets are tried, and nobody asks what each could cost at least.
		out.BoundPerHour = floor(r.packer.Bound())
	}
	for i := range r.w.problem.Nodes {
		for _, part := range r.packer.Onto(i) {
			s := &r.shares[part.Lot]
			for range part.Count {
				out.Nominations = append(out.Nominations, r.w.nodes[i].nominate(s.class.spec.Namespace, s.pods[0]))
				s.pods = s.pods[1:]
			}
		}
	}
	for b := range r.packer.Bins() {
		node := r.finish(b)
		out.PricePerHour += node.PricePerHour
		out.Nodes = append(out.Nodes, node)
	}
	for _, c := range r.w.classes {
		if len(c.pods) > 0 {
			out.Unplaced = append(out.Unplaced, planning.UnplacedPods{Namespace: c.spec.Namespace, Pods: c.pods, Rejections: r.rejections(c)})
		}
	}
	return out
}

// floor rounds a bound down to millionths of a dollar: what it has beyond that may
// differ between processors.
func floor(dollars float64) float64 { return math.Floor(dollars*1e6) / 1e6 }

// finish turns a bin into what is to be launched. The types are written into the
// requirements before the daemons are summed up, so that a later batch,
// which has nothing but the claim, arrives at the same sum.
func (r *rounds) finish(b int) planning.PlannedNode {
	w, bin := r.w, &r.packer.Bins()[b]
	column := &w.columns[bin.Column]
	reqs, pods, taken := r.contents(column, bin)
	w.settleTenancy(column, reqs)
	choice := w.sameVariant(column, r.packer.Choice(b))
	planes := w.launched(column.pool, choice, bin.Planes)
	if planes != bin.Planes {
		reqs.Add(karpenter.CapacityTypeLabelKey, planning.In(karpenter.CapacityTypeOnDemand))
	}
	sold := r.sell(column.pool, choice, planes)
	reqs.Add(corev1.LabelInstanceTypeStable, sold.types)
	pin(reqs, column)
	reqs.FixCustomLabels()
	reqs.LowerMinValues(sold.variety)
	column.pool.unstateTenancy(reqs)
	return planning.PlannedNode{
		NodePool: column.pool.name, NodeClass: column.pool.class, Requirements: reqs, Offerings: sold.options, Pods: pods,
		Requests:         r.requests(taken.plus(w.overhead(column.pool.taints, reqs))),
		PricePerHour:     sold.options[0].PricePerHour,
		MinValuesRelaxed: sold.variety != nil,
	}
}

// sameVariant leaves the columns in a choice that give a node the labels of the column.
// Pods that ask for none of these labels fit on every variant of an instance type, but one
// launch may not name a type twice in a zone.
func (w *world) sameVariant(c *column, choice packing.Set) packing.Set {
	if len(c.pool.variants) == 1 {
		return choice
	}
	out := packing.NewSet(len(w.columns))
	choice.Each(func(k int) bool {
		if w.columns[k].variant == c.variant {
			out.Add(k)
		}
		return true
	})
	return out
}

// contents are the pods of a bin, what they take, and what they ask of it together.
// A custom label that the pool does not define is absent from its nodes, and no
// requirement: the API server refuses a NodeClaim with more than 100 of them, and
// one that names a label of a restricted domain.
func (r *rounds) contents(column *column, bin *packing.Bin) (planning.Requirements, []planning.PlacedPod, amounts) {
	base := column.pool.variants[column.variant]
	reqs, taken := base.Clone(), make(amounts, len(r.w.axis.names))
	if column.tenancyOpen() {
		reqs[karpenter.LabelInstanceTenancy] = column.pool.base[karpenter.LabelInstanceTenancy]
	}
	count := 0
	for _, part := range bin.Parts {
		count += part.Count
	}
	pods := make([]planning.PlacedPod, 0, count)
	var last *reach
	for _, part := range bin.Parts {
		s := &r.shares[part.Lot]
		if s.reach != last {
			for key, values := range s.reach.want {
				if _, defined := base[key]; key != corev1.LabelHostname && (defined || karpenter.WellKnownLabel(key)) {
					reqs.Add(key, values)
				}
			}
			last = s.reach
		}
		for i, need := range s.class.need {
			taken[i] += need * int64(part.Count)
		}
		for _, pod := range s.pods[:part.Count] {
			pods = append(pods, planning.PlacedPod{Namespace: s.class.spec.Namespace, Pod: pod})
		}
		s.pods = s.pods[part.Count:]
	}
	return reqs, pods, taken
}

// requests leaves out what only planning counts.
func (r *rounds) requests(taken amounts) corev1.ResourceList {
	out := r.w.axis.list(taken)
	for name := range out {
		if planning.IsAttachLimit(name) {
			delete(out, name)
		}
	}
	return out
}

// pin writes down which reservation was decided on.
func pin(reqs planning.Requirements, column *column) {
	if column.reservation == "" {
		return
	}
	reqs.Add(karpenter.CapacityTypeLabelKey, planning.In(karpenter.CapacityTypeReserved))
	reqs.Add(karpenter.LabelCapacityReservationID, planning.In(column.reservation))
}
