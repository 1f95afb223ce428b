package solver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// region is the part of the world in which a spread constraint counts pods. nil is
// everywhere.
type region struct {
	// key is equal for equal regions.
	key string
	// nodes are those that exist, and parts are where others may come.
	nodes packing.Set
	parts []*feasibleSet
	// overlaps are the reaches that were asked about, and whether the region meets them.
	overlaps map[*feasibleSet]bool
}

// findRegion finds where a spread constraint counts pods: on nodes that the pod selects,
// unless nodeAffinityPolicy is Ignore; and of those, if nodeTaintsPolicy is Honor, on
// the ones whose taints it tolerates. Karpenter:
// pkg/controllers/provisioning/scheduling/topologynodefilter.go.
func (w *state) findRegion(s *corev1.TopologySpreadConstraint, c *podClass) *region {
	if s == nil {
		return nil
	}
	anyOf, tolerations, key := []planning.Requirements{{}}, tolerateAll, "where"
	if s.NodeAffinityPolicy == nil || *s.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
		if got, problem := requiredAlternatives(c.spec, true); problem == "" && (len(got) > 1 || len(got[0]) > 0) {
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
		out.nodes, out.parts = out.nodes.Or(part.nodes), append(out.parts, part)
	}
	return out
}

// mayCount reports whether the group may count a pod that goes to a node of a reach.
// A reach that is only partly in the group's region counts.
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

// setsOverlap reports whether a node to come could be in both reaches.
func (w *state) setsOverlap(a, b *feasibleSet) bool {
	both := feasibleSet{candidates: a.candidates.And(b.candidates), zoneCapacityTypes: a.zoneCapacityTypes & b.zoneCapacityTypes}
	return w.isBuyable(&both)
}
