package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// maxChoices bounds how many combinations of domains are tried for one pod.
const maxChoices = 64

// chooseDomains returns the domains for one more pod of the class: for each label the best allowed
// value, or the next one if it leaves no value for the following labels.
func (w *state) chooseDomains(c *podClass, keys []string) (r *feasibleSet, domains []domain, ok bool) {
	ok = w.visitChoices(c, c.feasible, keys, nil, func(at *feasibleSet, chosen []domain) bool {
		r, domains = at, chosen
		return true
	})
	return r, domains, ok
}

// visitChoices visits the combinations of domains that the rules allow for one more pod of the class,
// best first, until enough returns true. It returns whether that happened.
func (w *state) visitChoices(c *podClass, at *feasibleSet, keys []string, chosen []domain, enough func(*feasibleSet, []domain) bool) bool {
	if len(keys) == 0 {
		if w.isFull(c, at) {
			c.blockedBy = noMoreSets
			return false
		}
		return enough(at, slices.Clone(chosen))
	}
	var tried []string
	for len(tried) < maxChoices {
		best, found := w.findBestDomain(c, at, keys[0], tried)
		if !found {
			break
		}
		if w.visitChoices(c, w.narrowToValue(at, keys[0], best), keys[1:], append(chosen, domain{keys[0], best}), enough) {
			return true
		}
		tried = append(tried, best)
	}
	owned := slices.ContainsFunc(c.rules.groups, func(g *group) bool { return g.key == keys[0] })
	if len(tried) == 0 && !owned && !w.isExcludedByOthers(c, keys[0]) {
		return w.visitChoices(c, at, keys[1:], chosen, enough)
	}
	c.blockedBy = keys[0]
	return false
}

// isExcludedByOthers reports whether anti-affinity of other pods may exclude the class from domains
// of a key.
func (w *state) isExcludedByOthers(c *podClass, key string) bool {
	return slices.ContainsFunc(c.set.counted, func(g *group) bool { return g.key == key && g.kind == antiAffinityKind })
}

// findBestDomain returns the best allowed value of a label that is not in tried: where the fewest
// counted pods are, then where the pod excludes the fewest others, then where the least is planned.
func (w *state) findBestDomain(c *podClass, r *feasibleSet, key string, tried []string) (best string, found bool) {
	least := w.minDomainCounts(c, key)
	var rank [3]int64
	for _, value := range w.topology.domainValues(w, key) {
		if slices.Contains(tried, value) {
			continue
		}
		n := w.narrowToValue(r, key, value)
		if !n.nonEmpty || w.isFull(c, n) || !w.allowsDomain(c, key, value, least) || !w.canHoldPod(c, n) {
			continue
		}
		now := w.rankDomain(c, n, key, value)
		if than := slices.Compare(now[:], rank[:]); !found || than < 0 || than == 0 && w.prefersLast {
			best, rank, found = value, now, true
		}
	}
	return best, found
}

// rankDomain returns the rank of a domain for one more pod of the class; lower is better.
func (w *state) rankDomain(c *podClass, r *feasibleSet, key, value string) (rank [3]int64) {
	rank[2] = w.topology.load[key][value]
	rank[0] = w.splitPenalty(c, r, value)
	for _, g := range c.rules.groups {
		if g.key == key {
			strict, mild := w.ownerPenalty(g, value)
			rank[0], rank[1] = rank[0]+strict, rank[1]+mild
		}
	}
	for _, g := range c.set.counted {
		if g.key == key && w.mayCount(g, r) {
			strict, mild := w.memberPenalty(g, value)
			rank[0], rank[1] = rank[0]+strict, rank[1]+mild
		}
	}
	return rank
}

// ownerPenalty returns the penalties for one more owner of a group in a domain.
func (w *state) ownerPenalty(g *group, value string) (strict, mild int64) {
	switch {
	case g.kind == spreadKind:
		return int64(g.counts[value]), 0
	case g.kind == antiAffinityKind && g.hard && w.hadUnplaced && g.owners[value] == 0:
		return 0, blocksOthersPenalty
	}
	return 0, 0
}

// memberPenalty returns the penalties for one more member of a group in a domain.
func (w *state) memberPenalty(g *group, value string) (strict, mild int64) {
	if g.kind == spreadKind {
		if g.wouldBreakSpread(value, len(w.topology.domainValues(w, g.key))) {
			strict = breaksSpreadPenalty
		}
		return strict, int64(g.counts[value])
	}
	if g.openedDomain != nil && g.followers == 0 && *g.openedDomain != value {
		mild = blocksOthersPenalty
	}
	if !w.hadUnplaced || !g.hard || g.counts[value] > 0 {
		return 0, mild
	}
	switch {
	case g.kind == antiAffinityKind:
		return 0, blocksOthersPenalty
	case w.isSoughtDomain(g, value):
		return 0, mild - blocksOthersPenalty
	}
	return 0, mild
}

// isSoughtDomain reports whether pods with required affinity to the group's members could go to a
// domain that has no member yet.
func (w *state) isSoughtDomain(g *group, value string) bool {
	if got, known := g.soughtDomains[value]; known {
		return got
	}
	found := slices.ContainsFunc(w.classes, func(c *podClass) bool {
		if c.problem != "" || !slices.Contains(c.rules.groups, g) {
			return false
		}
		return slices.ContainsFunc(w.requiredFeasibleSets(c, g), func(r *feasibleSet) bool { return w.canHoldPod(c, w.narrowToValue(r, g.key, value)) })
	})
	if g.soughtDomains == nil {
		g.soughtDomains = map[string]bool{}
	}
	g.soughtDomains[value] = found
	return found
}

// placement is a class in one feasible set, by key.
type placement struct {
	spec     *planning.PodSpec
	feasible string
}

// isFull reports whether no more pods of the class may go to the feasible set.
func (w *state) isFull(c *podClass, r *feasibleSet) bool {
	most, capped := w.domainCaps[placement{c.spec, r.key}]
	return c.fullSets[r.key] || capped && c.assigned[r.key] >= most
}

const (
	// breaksSpreadPenalty ranks a domain after all domains that break no spread.
	breaksSpreadPenalty = 1 << 32
	// blocksOthersPenalty ranks a domain after domains already closed to the pods that an
	// anti-affinity rule excludes.
	blocksOthersPenalty = 1 << 16
)

// canHoldPod reports whether the feasible set could hold a pod of the class, by size and by the
// limits at the start.
func (w *state) canHoldPod(c *podClass, r *feasibleSet) bool {
	if w.openNodes(r.nodes).Len() > 0 {
		return true
	}
	if got, known := c.canHold[r]; known {
		return got
	}
	if c.canHold == nil {
		c.canHold = map[*feasibleSet]bool{}
	}
	c.canHold[r] = w.canBuyNodeFor(c, r)
	return c.canHold[r]
}

// canBuyNodeFor reports whether the limits at the start allow a new node for a pod of the class.
func (w *state) canBuyNodeFor(c *podClass, r *feasibleSet) bool {
	return w.anyCandidate(r, func(candidate *packing.CandidateType) bool {
		return c.requests.fitsIn(candidate.Allocatable) && w.problem.Pools[candidate.Pool].FitsNode(candidate.Capacity)
	})
}

// wouldBreakSpread reports whether one more member in a domain would violate the spread of owners in
// it; the pod may be able to go elsewhere. It counts all domains, eligible or not, which is exact
// enough for a penalty.
func (g *group) wouldBreakSpread(value string, domains int) bool {
	if g.owners[value] == 0 {
		return false
	}
	least := g.counts[value]
	for _, n := range g.counts {
		least = min(least, n)
	}
	if len(g.counts) < domains || domains < g.min {
		least = 0
	}
	return g.counts[value]+1-least > g.skew
}
