package solver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// allowsDomain reports whether all rules over a label allow the class in one of its values.
func (w *state) allowsDomain(c *podClass, key, value string, least []int) bool {
	for i, g := range c.rules.groups {
		if g.key != key || g.kind == affinityKind && g.hard && c.mayBeFirst() {
			continue
		}
		if !g.allowsOwner(c.set, value, least[i]) {
			return false
		}
	}
	return !c.isExcludedFrom(key, value)
}

// isExcludedFrom reports whether the anti-affinity of other pods excludes the class from a domain.
func (c *podClass) isExcludedFrom(key, value string) bool {
	return slices.ContainsFunc(c.set.counted, func(g *group) bool { return g.key == key && g.kind == antiAffinityKind && g.owners[value] > 0 })
}

// mayBeFirst reports whether the first pod of the class may go anywhere: all terms of its required affinity select it, and no pod that
// they select is in a domain of any of them (Kubernetes: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, satisfyPodAffinity).
func (c *podClass) mayBeFirst() bool {
	return !slices.ContainsFunc(c.rules.groups, func(g *group) bool {
		return g.kind == affinityKind && g.hard && (!g.members[c.set] || g.countMembers() > 0)
	})
}

// allowsOwner reports whether one of the group's owners may go to a domain. least is the global
// minimum of a spread.
func (g *group) allowsOwner(set *labelSet, value string, least int) bool {
	self := g.members[set]
	switch g.kind {
	case affinityKind:
		// The first pod of a preferred affinity that selects itself may go anywhere.
		return g.counts[value] > 0 || !g.hard && self && g.countMembers() == 0
	case antiAffinityKind:
		return g.counts[value] == 0
	default:
		count := g.counts[value]
		if self {
			count++
		}
		return count-least <= g.skew
	}
}

func (g *group) countMembers() int {
	sum := 0
	for _, n := range g.counts {
		sum += n
	}
	return sum
}

// minDomainCounts returns the global minimum of each spread constraint of the class over a label: the
// fewest pods in any eligible domain, or 0 if there are fewer domains than minDomains. It ignores pods
// that may be placed on nodes that do not count.
func (w *state) minDomainCounts(c *podClass, key string) []int {
	out := make([]int, len(c.rules.groups))
	for i, g := range c.rules.groups {
		if g.kind != spreadKind || g.key != key {
			continue
		}
		var counts []int
		for _, value := range w.topology.domainValues(w, key) {
			if w.isEligibleDomain(c, g, value) {
				counts = append(counts, g.counts[value]-g.uncertain[value])
			}
		}
		if len(counts) > 0 && len(counts) >= g.min {
			out[i] = slices.Min(counts)
		}
	}
	return out
}

// isEligibleDomain reports whether a domain counts for a spread constraint: it has, or could have,
// nodes that the constraint counts.
func (w *state) isEligibleDomain(c *podClass, g *group, value string) bool {
	return slices.ContainsFunc(w.requiredFeasibleSets(c, g), func(r *feasibleSet) bool { return w.narrowToValue(r, g.key, value).nonEmpty })
}

// requiredSetKey is equal for constraints that count the same new nodes.
type requiredSetKey struct {
	constraintKey, labels             string
	ignoresNodeAffinity, honorsTaints bool
}

// requiredFeasibleSets returns where nodes that count for the class's spread are or could be, one set for
// each alternative. It uses the node selector and required node affinity, unless the constraint ignores
// node affinity, and the pod's tolerations if the constraint honors taints; otherwise any taint is allowed.
func (w *state) requiredFeasibleSets(c *podClass, g *group) []*feasibleSet {
	at := requiredSetKey{c.constraintKey, strings.Join(g.labels, ","), g.ignoresNodeAffinity, g.honorsTaints}
	if got, known := w.requiredSets[at]; known {
		return got
	}
	tolerations := tolerateAll
	if g.honorsTaints {
		tolerations = c.spec.Tolerations
	}
	anyOf := []planning.Requirements{{}}
	if !g.ignoresNodeAffinity {
		anyOf, _ = affinityAlternatives(c.spec)
	}
	out := make([]*feasibleSet, 0, len(anyOf))
	for i, want := range anyOf {
		out = append(out, w.findFeasibleSet(fmt.Sprint("strict", i, at), requireLabels(want, g.labels), tolerations, true))
	}
	if w.requiredSets == nil {
		w.requiredSets = map[requiredSetKey][]*feasibleSet{}
	}
	w.requiredSets[at] = out
	return out
}
