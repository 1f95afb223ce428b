package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// daemon is a DaemonSet's pod: what every node that it may run on gives up.
type daemon struct {
	spec  *planning.PodSpec
	need  amounts
	anyOf []planning.Requirements
	// columns are those whose nodes it will run on.
	columns packing.Set
}

// addDaemons takes what daemons need off the columns' room and off nodes
// to which they have not come yet. Startup taints do not keep a daemon away, and
// what it wants of the pods beside it does not change its load.
func (w *world) addDaemons() {
	for i := range w.snapshot.DaemonSets {
		spec := &w.snapshot.DaemonSets[i]
		anyOf, problem := required(spec, true)
		if problem != "" {
			continue // Nobody can run it: it takes no room.
		}
		d := daemon{spec: spec, need: w.axis.of(spec.Requests), anyOf: anyOf, columns: packing.NewSet(len(w.columns))}
		for j, want := range anyOf {
			r := &reach{want: want, tolerate: spec.Tolerations, relaxed: true}
			if columns := w.columnsOf(r); j == 0 {
				d.columns = columns
			} else {
				d.columns = d.columns.Or(columns)
			}
		}
		d.columns.Each(func(k int) bool {
			amounts(w.problem.Columns[k].Room).sub(d.need)
			return true
		})
		w.daemons = append(w.daemons, d)
	}
	for i := range w.problem.Nodes {
		w.expectDaemons(i)
	}
}

// expectDaemons keeps room on a node for daemons that will come to it.
func (w *world) expectDaemons(i int) {
	e, expected := w.nodes[i], make(amounts, len(w.axis.names))
	for _, d := range w.daemons {
		if _, kept := untolerated(e.taints, d.spec.Tolerations, true); !kept && e.attracts(d) {
			expected = expected.plus(d.need)
		}
	}
	coming := expected.minus(w.axis.of(e.node.DaemonRequests)).most(make(amounts, len(w.axis.names)))
	amounts(w.problem.Nodes[i].Room).sub(coming)
}

// attracts reports whether a daemon is going to run on the node. For an open
// claim it is enough that it could: that is how the claim was planned.
func (e *existing) attracts(d daemon) bool {
	if e.open != nil {
		return d.suits(e.open)
	}
	return slices.ContainsFunc(d.anyOf, e.satisfies)
}

// suits reports whether the daemon could run on a node of these requirements.
func (d daemon) suits(r planning.Requirements) bool {
	return slices.ContainsFunc(d.anyOf, r.IsCompatible)
}

// overhead is what daemons take from a node of a pool with these requirements.
func (w *world) overhead(taints []corev1.Taint, r planning.Requirements) amounts {
	total, r := make(amounts, len(w.axis.names)), r.Intersect(planning.RegistrationLabels)
	for _, d := range w.daemons {
		if _, kept := untolerated(taints, d.spec.Tolerations, true); !kept && d.suits(r) {
			total = total.plus(d.need)
		}
	}
	return total
}
