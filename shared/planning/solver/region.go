package solver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// region is the set of nodes in which a spread constraint counts pods. A nil region is all nodes.
type region struct {
	// key is equal for equal regions.
	key string
	// nodes are the existing nodes, and parts are where new nodes may be, of these candidates, zones and capacity types.
	nodes             packing.Set
	parts             []*feasibleSet
	candidates        packing.Set
	zoneCapacityTypes uint64
	// overlaps caches whether the region overlaps a feasible set, and partly whether nodes of the feasible set are or may
	// be outside of the region.
	overlaps, partly map[*feasibleSet]bool
}

// findRegion returns where a spread constraint counts pods: on nodes that the pod's node selector
// and affinity match, unless nodeAffinityPolicy is Ignore; and if nodeTaintsPolicy is Honor, only
// on nodes whose taints the pod tolerates. Karpenter:
// pkg/controllers/provisioning/scheduling/topologynodefilter.go.
func (w *state) findRegion(s *corev1.TopologySpreadConstraint, c *podClass) *region {
	if s == nil {
		return nil
	}
	anyOf, tolerations, key := []planning.Requirements{{}}, tolerateAll, "where"
	if s.NodeAffinityPolicy == nil || *s.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
		if got, _ := affinityAlternatives(c.spec); len(got) > 1 || len(got[0]) > 0 { // Pods without an alternative have no rules.
			anyOf, key = got, key+c.constraintKey
		}
	}
	if s.NodeTaintsPolicy != nil && *s.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
		tolerations, key = c.spec.Tolerations, key+"\x00tolerated"+c.constraintKey
	}
	if labels := listSpreadLabels(c.spec); len(labels) > 0 {
		key += fmt.Sprint("\x00labelled", labels)
		for i := range anyOf {
			anyOf[i] = requireLabels(anyOf[i], labels)
		}
	}
	if key == "where" {
		return nil
	}
	out := &region{key: key, nodes: packing.NewSet(len(w.problem.Nodes)), candidates: packing.NewSet(len(w.candidates))}
	for i, want := range anyOf {
		part := w.findFeasibleSet(fmt.Sprint(key, i), want, tolerations, true)
		out.nodes, out.parts = out.nodes.Union(part.nodes), append(out.parts, part)
		out.candidates = out.candidates.Union(part.candidates)
		out.zoneCapacityTypes |= part.zoneCapacityTypes
	}
	return out
}

// mayCount reports whether the group may count a pod on a node of the feasible set. An overlap with
// the group's region is enough.
func (w *state) mayCount(g *group, r *feasibleSet) bool {
	if g.region == nil {
		return true
	}
	met, known := g.region.overlaps[r]
	if !known {
		met = r.nodes.Overlaps(g.region.nodes) || slices.ContainsFunc(g.region.parts, func(part *feasibleSet) bool { return w.setsOverlap(part, r) })
		if g.region.overlaps == nil {
			g.region.overlaps = map[*feasibleSet]bool{}
		}
		g.region.overlaps[r] = met
	}
	return met
}

// isUncertain reports whether the group counts only those pods of the feasible set that are placed on
// some of its existing nodes and candidates, or in some of its zones.
func (g *group) isUncertain(r *feasibleSet) bool {
	if g.region == nil {
		return false
	}
	partly, known := g.region.partly[r]
	if !known {
		partly = r.nodes.Without(g.region.nodes).Len() > 0 || r.candidates.Without(g.region.candidates).Len() > 0 ||
			r.candidates.Len() > 0 && r.zoneCapacityTypes&^g.region.zoneCapacityTypes != 0
		if g.region.partly == nil {
			g.region.partly = map[*feasibleSet]bool{}
		}
		g.region.partly[r] = partly
	}
	return partly
}

// settleCounts removes the pods of an assignment from the counts of the spread constraints that do not
// count their nodes, or may not, because a new node may be launched in another zone. Before the packer chooses nodes, only
// the feasible set is known.
func (r *rounds) settleCounts(id int) {
	s := &r.assignments[id]
	for _, d := range s.domains {
		for _, g := range s.class.set.counted {
			if g.key != d.key || !g.isUncertain(s.feasible) || !r.state.mayCount(g, s.feasible) {
				continue
			}
			g.uncertain[d.value] -= len(s.pods)
			g.counts[d.value] -= r.countOutside(id, g.region)
		}
	}
}

// countOutside returns how many pods of an assignment are or may be outside of a region.
func (r *rounds) countOutside(id int, where *region) (n int) {
	count := func(all []packing.GroupCount) {
		for _, pods := range all {
			if pods.Group == id {
				n += pods.Count
			}
		}
	}
	r.assignments[id].feasible.nodes.Without(where.nodes).Each(func(i int) bool {
		count(r.packer.PodsOnNode(i))
		return true
	})
	for i := range r.packer.Bins() {
		if bin := &r.packer.Bins()[i]; !where.candidates.Has(bin.Candidate) || bin.ZoneCapacityTypes&^where.zoneCapacityTypes != 0 {
			count(bin.Pods)
		}
	}
	return n
}

// setsOverlap reports whether a new node could be in both sets.
func (w *state) setsOverlap(a, b *feasibleSet) bool {
	both := feasibleSet{candidates: a.candidates.Intersect(b.candidates), zoneCapacityTypes: a.zoneCapacityTypes & b.zoneCapacityTypes}
	return w.isBuyable(&both)
}
