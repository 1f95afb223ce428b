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
	// nodes are the existing nodes, and parts are where new nodes may be.
	nodes packing.Set
	parts []*feasibleSet
	// overlaps caches whether the region overlaps a feasible set.
	overlaps map[*feasibleSet]bool
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
		if got, problem := affinityAlternatives(c.spec); problem == "" && (len(got) > 1 || len(got[0]) > 0) {
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
	out := &region{key: key, nodes: packing.NewSet(len(w.problem.Nodes))}
	for i, want := range anyOf {
		part := w.findFeasibleSet(fmt.Sprint(key, i), want, tolerations, true)
		out.nodes, out.parts = out.nodes.Union(part.nodes), append(out.parts, part)
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

// setsOverlap reports whether a new node could be in both sets.
func (w *state) setsOverlap(a, b *feasibleSet) bool {
	both := feasibleSet{candidates: a.candidates.Intersect(b.candidates), zoneCapacityTypes: a.zoneCapacityTypes & b.zoneCapacityTypes}
	return w.isBuyable(&both)
}
