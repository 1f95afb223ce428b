package solver

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// maxClaimTypes is how many instance types a NodeClaim lists; the cheapest are kept.
const maxClaimTypes = 600

// maxLaunchTypes is how many instance types one launch lists.
const maxLaunchTypes = 60

func (r *rounds) newResult() planning.Result {
	out := planning.Result{Partial: r.packer.IsBudgetUsed()}
	if r.state.removal == nil {
		// Simulations try many sets of nodes, and their callers do not use the bound.
		out.BoundPerHour = floorMicrodollars(r.packer.LowerBound())
	}
	for i := range r.state.problem.Nodes {
		for _, part := range r.packer.PodsOnNode(i) {
			s := &r.assignments[part.Group]
			for range part.Count {
				out.Nominations = append(out.Nominations, r.state.nodes[i].newNomination(s.class.spec.Namespace, s.pods[0]))
				s.pods = s.pods[1:]
			}
		}
	}
	for b := range r.packer.Bins() {
		node := r.newPlannedNode(b)
		out.PricePerHour += node.PricePerHour
		out.Nodes = append(out.Nodes, node)
	}
	for _, c := range r.state.classes {
		if len(c.pods) > 0 {
			out.Unplaced = append(out.Unplaced, planning.UnplacedPods{Namespace: c.spec.Namespace, Pods: c.pods, Rejections: r.listRejections(c)})
		}
	}
	r.addAllocations(&out)
	return out
}

// floorMicrodollars rounds a bound down to millionths of a dollar; smaller digits may differ between
// processors.
func floorMicrodollars(dollars float64) float64 { return math.Floor(dollars*1e6) / 1e6 }

// newPlannedNode turns a bin into a planned node. It adds the instance types to the requirements
// before it sums the daemons, because a later batch has only the NodeClaim and must compute the same
// sum.
func (r *rounds) newPlannedNode(b int) planning.PlannedNode {
	w, bin := r.state, &r.packer.Bins()[b]
	candidate := &w.candidates[bin.Candidate]
	reqs, pods, taken := r.collectPods(candidate, bin)
	r.chooseNodeTenancy(candidate, bin, reqs)
	r.chooseNodePartition(candidate, bin, reqs)
	choice := w.filterVariant(candidate, r.packer.BuyableTypes(b))
	zoneCapacityTypes := w.launchOfferings(candidate.pool, choice, bin.ZoneCapacityTypes)
	if zoneCapacityTypes != bin.ZoneCapacityTypes {
		reqs.Add(karpenter.CapacityTypeLabelKey, planning.In(karpenter.CapacityTypeOnDemand))
	}
	sold := r.findOfferings(candidate.pool, choice, zoneCapacityTypes)
	reqs.Add(corev1.LabelInstanceTypeStable, sold.types)
	pinReservation(reqs, candidate)
	reqs.FixCustomLabels()
	reqs.LowerMinValues(sold.minValueCounts)
	candidate.pool.dropTenancy(reqs)
	return planning.PlannedNode{
		NodePool: candidate.pool.name, NodeClass: candidate.pool.class, Requirements: reqs, Offerings: sold.offerings, Pods: pods,
		Requests:         r.launchRequests(taken.plus(w.daemonOverhead(candidate.pool.taints, reqs))),
		PricePerHour:     sold.offerings[0].PricePerHour,
		MinValuesRelaxed: sold.minValueCounts != nil,
	}
}

// filterVariant keeps those candidates of the choice that have the same variant as c. Pods that ask
// for none of the variant's labels fit on every variant of a type, but one launch must not list a
// type twice in a zone.
func (w *state) filterVariant(c *candidate, choice packing.Set) packing.Set {
	if len(c.pool.variants) == 1 {
		return choice
	}
	out := packing.NewSet(len(w.candidates))
	choice.Each(func(k int) bool {
		if w.candidates[k].variant == c.variant {
			out.Add(k)
		}
		return true
	})
	return out
}

// collectPods returns the bin's combined requirements, its pods and the resources that they use. It
// drops requirements on custom labels that the pool does not define: the nodes do not have such a
// label, and the API server rejects a NodeClaim with more than 100 requirements, or with a
// requirement on a label of a restricted domain.
func (r *rounds) collectPods(candidate *candidate, bin *packing.Bin) (planning.Requirements, []planning.PlacedPod, amounts) {
	base := candidate.pool.variants[candidate.variant]
	reqs, taken := base.Clone(), make(amounts, len(r.state.resources.names))
	if candidate.leavesTenancyOpen() {
		reqs[karpenter.LabelInstanceTenancy] = candidate.pool.requirements[karpenter.LabelInstanceTenancy]
	}
	count := 0
	for _, part := range bin.Pods {
		count += part.Count
	}
	pods := make([]planning.PlacedPod, 0, count)
	var last *feasibleSet
	for _, part := range bin.Pods {
		s := &r.assignments[part.Group]
		if s.feasible != last {
			for key, values := range s.feasible.requirements {
				if _, defined := base[key]; key != corev1.LabelHostname && (defined || karpenter.IsWellKnownLabel(key)) {
					reqs.Add(key, values)
				}
			}
			last = s.feasible
		}
		for i, need := range s.class.requests {
			taken[i] += need * int64(part.Count)
		}
		for _, pod := range s.pods[:part.Count] {
			pods = append(pods, planning.PlacedPod{Namespace: s.class.spec.Namespace, Pod: pod})
		}
		s.pods = s.pods[part.Count:]
	}
	return reqs, pods, taken
}

// launchRequests returns the requests of a node without attach limits, which only the planner counts.
func (r *rounds) launchRequests(taken amounts) corev1.ResourceList {
	out := r.state.resources.toResourceList(taken)
	for name := range out {
		if planning.IsAttachLimit(name) {
			delete(out, name)
		}
	}
	return out
}

// pinReservation adds the requirement for the candidate's reservation.
func pinReservation(reqs planning.Requirements, candidate *candidate) {
	if candidate.reservation == "" {
		return
	}
	reqs.Add(karpenter.CapacityTypeLabelKey, planning.In(karpenter.CapacityTypeReserved))
	reqs.Add(karpenter.LabelCapacityReservationID, planning.In(candidate.reservation))
}
