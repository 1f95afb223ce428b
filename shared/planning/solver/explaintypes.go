package solver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// typeExplainer explains the instance types of one pool for one class.
type typeExplainer struct {
	rounds *rounds
	pool   *pool
	class  *podClass
	anyOf  []planning.Requirements
	// feasible are the sets of anyOf. single has, by label, the set of that requirement of the first
	// alternative alone.
	feasible []*feasibleSet
	single   map[string]*feasibleSet
	keys     []string
	// candidates are the candidates by the index of their type.
	candidates map[int][]int
	rules      labelRules
	filters    []typeFilter
}

// explainTypes returns the rule that removes each instance type of the pool's node class.
func (r *rounds) explainTypes(p *pool, c *podClass, anyOf []planning.Requirements) []TypeExplanation {
	w := r.state
	e := typeExplainer{rounds: r, pool: p, class: c, anyOf: anyOf, single: map[string]*feasibleSet{}, candidates: map[int][]int{}, rules: sortRules(p.requirements)}
	for i, want := range anyOf {
		e.feasible = append(e.feasible, w.alternativeSet(c, want, i))
	}
	if len(anyOf) > 0 {
		e.keys = slices.Sorted(maps.Keys(anyOf[0]))
		for _, key := range e.keys {
			only := planning.Requirements{key: anyOf[0][key]}
			e.single[key] = w.findFeasibleSet("explain\x00"+key+c.constraintKey, only, tolerateAll, true)
		}
	}
	for _, by := range e.rules {
		e.filters = append(e.filters, p.types.newPoolFilter(by))
	}
	for k := p.firstCandidate; k < p.endCandidate; k++ {
		e.candidates[w.candidates[k].typeIndex] = append(e.candidates[w.candidates[k].typeIndex], k)
	}
	out := make([]TypeExplanation, 0, len(p.types.types))
	for i := range p.types.types {
		one := TypeExplanation{InstanceType: p.types.types[i].Name}
		one.Rule, one.Key = e.explainType(i)
		one.Cheapest = e.findCheapest(&p.types.types[i])
		out = append(out, one)
	}
	return out
}

// explainType returns the first rule that removes the i-th type, and its label or resource.
func (e *typeExplainer) explainType(i int) (rule, key string) {
	if !slices.Contains(e.pool.allowedTypes, i) {
		return TypePoolRequirements, e.findPoolKey(i)
	}
	own := e.candidates[i]
	if len(own) == 0 {
		return e.explainUnbuyable(&e.pool.types.types[i])
	}
	sold := e.filterSold(own)
	if len(sold) == 0 {
		return TypePodRequirements, e.findPodKey(own)
	}
	return e.explainSize(sold)
}

// findPoolKey returns the first requirement of the pool that excludes the i-th type.
func (e *typeExplainer) findPoolKey(i int) string {
	for k, by := range e.rules {
		excluded := !e.filters[k].allowsType(i)
		if slices.Contains(planning.LabelsNotFromType, by.key) {
			excluded = by.values.IsEmpty() // For example a partition that the placement group does not have.
		}
		if excluded {
			return by.key
		}
	}
	return ""
}

// explainUnbuyable returns why the pool has no candidate of a type that its requirements allow.
func (e *typeExplainer) explainUnbuyable(t *instancetypes.Type) (rule, key string) {
	isAllowed, isPriced := false, false
	for j := range t.Offerings {
		o := &t.Offerings[j]
		if !e.pool.requirements.AllowsOffering(o.PricedOffering) {
			continue
		}
		if o.IsFullReservation() {
			return TypeReservationFull, ""
		}
		isAllowed, isPriced = true, isPriced || !o.Unpriced
	}
	switch {
	case !isAllowed:
		return TypePoolRequirements, e.findOfferingKey(t)
	case !isPriced:
		return TypeNoPrice, ""
	default:
		return TypeUnavailable, ""
	}
}

// findOfferingKey returns the requirement of the pool that no offering of the type meets; empty if only
// several requirements together exclude the offerings.
func (e *typeExplainer) findOfferingKey(t *instancetypes.Type) string {
	for _, key := range planning.OfferingLabels {
		values, ok := e.pool.requirements[key]
		if ok && !slices.ContainsFunc(t.Offerings, func(o instancetypes.InstanceOffering) bool { return values.Has(o.Label(key)) }) {
			return key
		}
	}
	return ""
}

// filterSold returns the candidates that one of the pod's alternatives allows.
func (e *typeExplainer) filterSold(own []int) []int {
	return slices.DeleteFunc(slices.Clone(own), func(k int) bool {
		return !slices.ContainsFunc(e.feasible, func(r *feasibleSet) bool { return e.isSold(k, r) })
	})
}

// isSold reports whether the candidate can be bought within the set.
func (e *typeExplainer) isSold(k int, r *feasibleSet) bool {
	return r.candidates.Has(k) && slices.ContainsFunc(e.rounds.state.problem.Candidates[k].Prices, func(o packing.ZonePrice) bool { return r.zoneCapacityTypes&(1<<o.ZoneCapacityType) != 0 })
}

// findPodKey returns the first requirement of the pod that excludes all of the candidates; empty if only
// several requirements together exclude them.
func (e *typeExplainer) findPodKey(own []int) string {
	for _, key := range e.keys {
		if !slices.ContainsFunc(own, func(k int) bool { return e.isSold(k, e.single[key]) }) {
			return key
		}
	}
	return ""
}

// explainSize returns why no node of the candidates is launched for the pod.
func (e *typeExplainer) explainSize(sold []int) (rule, key string) {
	w, p := e.rounds.state, e.rounds.packer
	large := slices.DeleteFunc(slices.Clone(sold), func(k int) bool { return !e.class.requests.fitsIn(w.problem.Candidates[k].Allocatable) })
	if len(large) == 0 {
		i, _ := e.class.requests.largestShortage(w.problem.Candidates[sold[0]].Allocatable)
		return TypeResources, string(w.resources.names[i])
	}
	if !slices.ContainsFunc(large, p.CanBuy) {
		return TypeLimits, ""
	}
	if !slices.ContainsFunc(large, func(k int) bool {
		return slices.ContainsFunc(e.feasible, func(r *feasibleSet) bool { return p.HasAddresses(k, r.zoneCapacityTypes) })
	}) {
		return TypeAddresses, ""
	}
	return "", ""
}

// findCheapest returns the cheapest priced offering, in this order of preference: buyable offerings that
// pool and pod allow, all offerings that pool and pod allow, offerings that the pool allows, all offerings.
func (e *typeExplainer) findCheapest(t *instancetypes.Type) planning.PricedOffering {
	rank := func(o *instancetypes.InstanceOffering) int {
		switch {
		case !e.pool.requirements.AllowsOffering(o.PricedOffering):
			return 3
		case !slices.ContainsFunc(e.anyOf, func(r planning.Requirements) bool { return r.AllowsOffering(o.PricedOffering) }):
			return 2
		case !o.IsBuyable():
			return 1
		}
		return 0
	}
	var best *instancetypes.InstanceOffering
	for j := range t.Offerings {
		o := &t.Offerings[j]
		if o.Unpriced || o.PricePerHour < 0 {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(o), rank(best)), cmp.Compare(o.PricePerHour, best.PricePerHour)) < 0 {
			best = o
		}
	}
	if best == nil {
		return planning.PricedOffering{}
	}
	return best.PricedOffering
}
