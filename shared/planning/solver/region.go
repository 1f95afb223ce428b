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
	parts []*reach
	// met are the reaches that were asked about, and whether the region meets them.
	met map[*reach]bool
}

// region finds where a spread constraint counts pods: on nodes that the pod selects,
// unless nodeAffinityPolicy is Ignore; and of those, if nodeTaintsPolicy is Honor, on
// the ones whose taints it tolerates. Karpenter:
// pkg/controllers/provisioning/scheduling/topologynodefilter.go.
func (w *world) region(s *corev1.TopologySpreadConstraint, c *class) *region {
	if s == nil {
		return nil
	}
	anyOf, tolerations, key := []planning.Requirements{{}}, everything, "where"
	if s.NodeAffinityPolicy == nil || *s.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
		if got, problem := required(c.spec, true); problem == "" && (len(got) > 1 || len(got[0]) > 0) {
			anyOf, key = got, key+c.shape
		}
	}
	if s.NodeTaintsPolicy != nil && *s.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
		tolerations, key = c.spec.Tolerations, key+"\x00tolerated"+c.shape
	}
	if labels := spreadLabels(c.spec); len(labels) > 0 {
		key += fmt.Sprint("\x00labelled", labels)
		for i := range anyOf {
			anyOf[i] = labelled(anyOf[i], labels)
		}
	}
	if key == "where" {
		return nil
	}
	out := &region{key: key, nodes: packing.NewSet(len(w.problem.Nodes))}
	for i, want := range anyOf {
		part := w.reach(fmt.Sprint(key, i), want, tolerations, true)
		out.nodes, out.parts = out.nodes.Or(part.nodes), append(out.parts, part)
	}
	return out
}

// mayCount reports whether the group may count a pod that goes to a node of a reach.
// A reach that is only partly in the group's region counts.
func (w *world) mayCount(g *group, r *reach) bool {
	if g.where == nil {
		return true
	}
	met, known := g.where.met[r]
	if !known {
		met = r.nodes.Overlaps(g.where.nodes) || slices.ContainsFunc(g.where.parts, func(part *reach) bool { return w.meet(part, r) })
		if g.where.met == nil {
			g.where.met = map[*reach]bool{}
		}
		g.where.met[r] = met
	}
	return met
}

// meet reports whether a node to come could be in both reaches.
func (w *world) meet(a, b *reach) bool {
	both := reach{columns: a.columns.And(b.columns), planes: a.planes & b.planes}
	return w.buyable(&both)
}
