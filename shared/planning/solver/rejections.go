package solver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// listRejections returns why a class was not placed: one reason for each pool, or a single one if the
// pod itself is the reason.
func (r *rounds) listRejections(c *podClass) []planning.Rejection {
	if c.problem != "" {
		return []planning.Rejection{{Rule: planning.RulePod, Detail: c.problem}}
	}
	if why := c.deviceProblems[noIndex]; why != "" {
		return []planning.Rejection{{Rule: planning.RulePod, Detail: why}}
	}
	if len(r.state.pools) == 0 {
		return []planning.Rejection{{Rule: planning.RuleNotReady, Detail: "the cluster has no NodePool that launches nodes for pods"}}
	}
	var out []planning.Rejection
	for _, p := range r.state.pools {
		out = append(out, r.rejectPool(p, c))
	}
	return out
}

// rejectPool returns the rule that excluded the class from a pool, for the alternative that was tried
// last.
func (r *rounds) rejectPool(p *pool, c *podClass) planning.Rejection {
	w := r.state
	if p.refusal.Rule != "" {
		return p.refusal
	}
	if taint, kept := findUntolerated(p.taints, c.spec.Tolerations, c.preferences.toleratesSoftTaints); kept {
		return p.newRejection(planning.RuleTaints, "the pod does not tolerate %s", taint.ToString())
	}
	own := p.candidateSet(len(w.candidates))
	if own.Len() == 0 && len(p.fullReservations) == 0 {
		return p.rejectWithoutTypes()
	}
	want := c.preferences.anyOf[0]
	if key, found := p.requirements.FindConflict(want); found {
		return p.newRejection(planning.RuleRequirements, "%s: the pod needs %s, the pool allows %s", key, want[key], p.requirements.AllowedValues(key))
	}
	sold := w.filterBuyable(own, c.feasible)
	large := w.filterLarge(sold, c)
	switch {
	case large.Len() == 0 && w.fitsFullReservation(p, c, want):
		return p.newRejection(planning.RuleNoOffering, "%s", w.explainFullReservation())
	case own.Len() == 0:
		return p.rejectWithoutTypes()
	case sold.Len() == 0:
		return w.explainNoOffering(p, c, own, want)
	case large.Len() == 0:
		return w.explainTooSmall(p, c, sold)
	}
	return r.rejectNode(p, c, large)
}

// candidateSet returns the candidates of the pool; count is the number of all candidates.
func (p *pool) candidateSet(count int) packing.Set {
	own := packing.NewSet(count)
	for k := p.firstCandidate; k < p.endCandidate; k++ {
		own.Add(k)
	}
	return own
}

// fitsFullReservation reports whether the pod could run on a node of a reservation that is full.
func (w *state) fitsFullReservation(p *pool, c *podClass, want planning.Requirements) bool {
	return slices.ContainsFunc(p.fullReservations, func(full fullReservation) bool {
		labels := mergeLabels(full.instanceType.Labels, full.offering.Labels)
		return p.requirements.AllowsType(labels) && want.AllowsType(labels) && want.AllowsOffering(full.offering.PricedOffering) &&
			c.requests.fitsIn(w.resources.toAmounts(full.instanceType.Allocatable))
	})
}

// explainFullReservation returns Karpenter's text (pkg/controllers/provisioning/scheduling/nodeclaim.go,
// offeringsToReserve).
func (w *state) explainFullReservation() string {
	if w.removal != nil {
		return "the only compatible reserved offering is full; falling through to other NodePools"
	}
	return "all compatible reserved offerings are full and no on-demand or spot fallback is available"
}

// filterLarge returns the candidates that are large enough for a pod of the class.
func (w *state) filterLarge(sold packing.Set, c *podClass) packing.Set {
	out := packing.NewSet(len(w.candidates))
	sold.Each(func(k int) bool {
		if c.requests.fitsIn(w.problem.Candidates[k].Allocatable) {
			out.Add(k)
		}
		return true
	})
	return out
}

// rejectNode returns why no node of these candidates, which are large enough, is launched for the class.
func (r *rounds) rejectNode(p *pool, c *podClass, large packing.Set) planning.Rejection {
	w := r.state
	switch {
	case c.deviceProblems[p.index] != "":
		return p.newRejection(planning.RuleDevices, "%s", c.deviceProblems[p.index])
	case r.packer.IsBudgetUsed():
		return p.newRejection(planning.RuleBudget, "the planner's work budget was used up before this pod; the next batch continues with it")
	case !r.anyCandidate(large, r.packer.CanReserve):
		return p.newRejection(planning.RuleNoOffering, "one or more instance types with compatible reserved offerings are available, but could not be reserved")
	case !r.anyCandidate(large, r.packer.CanBuy):
		return w.explainLimits(p, large, r.packer.Quota(p.index))
	case !r.anyCandidate(large, func(k int) bool { return r.packer.HasAddresses(k, c.feasible.zoneCapacityTypes) }):
		return p.newRejection(planning.RuleAddresses, "no zone of the pool has free addresses in its subnets and free capacity in its placement group")
	case c.blockedBy != "" || len(c.rules.hosts) > 0:
		return p.newRejection(planning.RuleTopology, "%s", w.explainTopology(c))
	default:
		return p.newRejection(planning.RulePod, "the pod fits on a new node, but not with the host ports of the pool's daemons or not with minValues")
	}
}

// anyCandidate reports whether holds is true for any candidate of the set.
func (r *rounds) anyCandidate(candidates packing.Set, holds func(k int) bool) bool {
	found := false
	candidates.Each(func(k int) bool {
		found = holds(k)
		return !found
	})
	return found
}

func (p *pool) newRejection(rule, format string, args ...any) planning.Rejection {
	return planning.Rejection{NodePool: p.name, Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

func (p *pool) rejectWithoutTypes() planning.Rejection {
	out := p.newRejection(planning.RuleNoOffering, "no instance type matches the pool's own requirements, zones and images")
	if p.unavailableTypes > 0 {
		out = p.newRejection(planning.RuleNoOffering, "all %d instance types of the pool are currently unavailable", p.unavailableTypes)
	}
	out.LacksInstanceTypes = true
	return out
}

// filterBuyable returns the candidates of own that the feasible set allows and that can be bought
// there.
func (w *state) filterBuyable(own packing.Set, r *feasibleSet) packing.Set {
	out := packing.NewSet(len(w.candidates))
	own.Intersect(r.candidates).Each(func(k int) bool {
		for _, o := range w.problem.Candidates[k].Prices {
			if r.zoneCapacityTypes&(1<<o.ZoneCapacityType) != 0 {
				out.Add(k)
			}
		}
		return true
	})
	return out
}

// explainNoOffering finds the one requirement without which an offering would match.
func (w *state) explainNoOffering(p *pool, c *podClass, own packing.Set, want planning.Requirements) planning.Rejection {
	if key := w.findUnmetKey(own, want); key != "" {
		return p.newRejection(planning.RuleNoOffering, "no offering of the pool that matches the pod's other requirements has %s %s", key, want[key])
	}
	if len(w.listRepelledDaemons(c)) > 0 {
		return p.newRejection(planning.RulePod, "its nodes run a DaemonSet's pod that cannot share a node with this one, because of a host port or a pod anti-affinity")
	}
	return p.newRejection(planning.RuleNoOffering, "no offering of the pool satisfies all of the pod's requirements")
}

// findUnmetKey returns the first requirement without which one of the candidates could be bought; empty
// if there is no such requirement.
func (w *state) findUnmetKey(own packing.Set, want planning.Requirements) string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		rest := maps.Clone(want)
		delete(rest, key)
		one := &feasibleSet{requirements: rest, zoneCapacityTypes: w.zoneCapacityTypesFor(rest), tolerations: tolerateAll}
		one.candidates = w.candidatesFor(one)
		if w.filterBuyable(own, one).Len() > 0 {
			return key
		}
	}
	return ""
}

// explainTooSmall names the candidate that comes closest, and the resource that it lacks.
func (w *state) explainTooSmall(p *pool, c *podClass, sold packing.Set) planning.Rejection {
	closest, index := w.findClosest(c, sold)
	if index < 0 {
		return p.newRejection(planning.RuleResources, "the daemons leave no free capacity on any instance type")
	}
	name := w.resources.names[index]
	needs, has := toQuantity(name, c.requests[index]), toQuantity(name, max(0, w.problem.Candidates[closest].Allocatable[index]))
	return p.newRejection(planning.RuleResources, "%s: the pod needs %s, and the closest type, %s, has %s left after the daemons",
		name, needs.String(), w.candidates[closest].instanceType.Name, has.String())
}

// findClosest returns the candidate that comes closest to holding a pod of the class, and the resource
// that it lacks; noIndex if all candidates can hold it, or lack only resources that the pod does not request.
func (w *state) findClosest(c *podClass, sold packing.Set) (closest, index int) {
	closest, index = noIndex, noIndex
	least := 2.0
	sold.Each(func(k int) bool {
		if i, share := c.requests.largestShortage(w.problem.Candidates[k].Allocatable); share > 0 && share < least {
			closest, index, least = k, i, share
		}
		return true
	})
	return closest, index
}

// explainLimits names the limit that the smallest candidate able to hold the pod exceeds.
func (w *state) explainLimits(p *pool, large packing.Set, left packing.Pool) planning.Rejection {
	if left.Nodes <= 0 {
		return p.newRejection(planning.RuleLimits, "limits.nodes is reached")
	}
	if detail := w.explainPriceLimit(p, large, left); detail != "" {
		return p.newRejection(planning.RuleLimits, "%s", detail)
	}
	smallest := noIndex
	large.Each(func(k int) bool {
		if smallest < 0 || slices.Compare(w.problem.Candidates[k].Capacity, w.problem.Candidates[smallest].Capacity) < 0 {
			smallest = k
		}
		return true
	})
	capacity := w.problem.Candidates[smallest].Capacity
	for i, name := range w.resources.names {
		if left.Quota[i] != packing.Unlimited && capacity[i] > left.Quota[i] {
			rest, has := toQuantity(name, max(0, left.Quota[i])), toQuantity(name, capacity[i])
			return p.newRejection(planning.RuleLimits, "limits.%s has %s left, and %s has %s", name, rest.String(), w.candidates[smallest].instanceType.Name, has.String())
		}
	}
	return p.newRejection(planning.RuleLimits, "another node would exceed the pool's limits")
}

// explainTopology names the rules over other pods that excluded the class.
func (w *state) explainTopology(c *podClass) string {
	var parts []string
	for _, g := range c.rules.groups {
		switch g.kind {
		case spreadKind:
			name := "spread"
			if c.spec.DefaultSpread {
				name = "default spread"
			}
			parts = append(parts, fmt.Sprintf("its %s over %s allows a skew of %d, and the other domains have no free capacity", name, g.key, g.skew))
		case affinityKind:
			parts = append(parts, "no domain of "+g.key+" that a node can use has a pod that its affinity selects")
		case antiAffinityKind:
			parts = append(parts, "every "+g.key+" has a pod that its anti-affinity selects")
		}
	}
	for _, h := range c.rules.hosts {
		if h.kind == affinityKind {
			parts = append(parts, "no node with a pod that its affinity over hostnames selects has free capacity")
		}
	}
	for _, g := range c.set.counted {
		if g.kind == antiAffinityKind {
			parts = append(parts, "pods with anti-affinity over "+g.key+" exclude it")
		}
	}
	if len(parts) == 0 {
		return "no domain has free capacity"
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}
