package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// daemon is a DaemonSet's pod: what every node that it may run on gives up.
type daemon struct {
	spec     *planning.PodSpec
	requests amounts
	anyOf    []planning.Requirements
	// candidates are those whose nodes it will run on.
	candidates packing.Set
}

// addDaemons takes what daemons need off the columns' room and off nodes
// to which they have not come yet. Startup taints do not keep a daemon away, and
// what it wants of the pods beside it does not change its load.
func (w *state) addDaemons() {
	for i := range w.snapshot.DaemonSets {
		spec := &w.snapshot.DaemonSets[i]
		anyOf, problem := requiredAlternatives(spec, true)
		if problem != "" {
			continue // Nobody can run it: it takes no room.
		}
		d := daemon{spec: spec, requests: w.resources.toAmounts(spec.Requests), anyOf: anyOf, candidates: packing.NewSet(len(w.candidates))}
		for j, want := range anyOf {
			r := &feasibleSet{requirements: want, tolerations: spec.Tolerations, relaxed: true}
			if columns := w.candidatesFor(r); j == 0 {
				d.candidates = columns
			} else {
				d.candidates = d.candidates.Or(columns)
			}
		}
		d.candidates.Each(func(k int) bool {
			amounts(w.problem.Columns[k].Room).subtract(d.requests)
			return true
		})
		w.daemons = append(w.daemons, d)
	}
	for i := range w.problem.Nodes {
		w.reserveForDaemons(i)
	}
}

// reserveForDaemons keeps room on a node for daemons that will come to it.
func (w *state) reserveForDaemons(i int) {
	e, expected := w.nodes[i], make(amounts, len(w.resources.names))
	for _, d := range w.daemons {
		if _, kept := findUntolerated(e.taints, d.spec.Tolerations, true); !kept && e.runsDaemon(d) {
			expected = expected.plus(d.requests)
		}
	}
	coming := expected.minus(w.resources.toAmounts(e.node.DaemonRequests)).maximum(make(amounts, len(w.resources.names)))
	amounts(w.problem.Nodes[i].Room).subtract(coming)
}

// runsDaemon reports whether a daemon is going to run on the node. For an open
// claim it is enough that it could: that is how the claim was planned.
func (e *existingNode) runsDaemon(d daemon) bool {
	if e.openRequirements != nil {
		return d.canRunOn(e.openRequirements)
	}
	return slices.ContainsFunc(d.anyOf, e.satisfiesRequirements)
}

// canRunOn reports whether the daemon could run on a node of these requirements.
func (d daemon) canRunOn(r planning.Requirements) bool {
	return slices.ContainsFunc(d.anyOf, r.IsCompatible)
}

// daemonOverhead is what daemons take from a node of a pool with these requirements.
func (w *state) daemonOverhead(taints []corev1.Taint, r planning.Requirements) amounts {
	total, r := make(amounts, len(w.resources.names)), r.Intersect(planning.RegistrationLabels)
	for _, d := range w.daemons {
		if _, kept := findUntolerated(taints, d.spec.Tolerations, true); !kept && d.canRunOn(r) {
			total = total.plus(d.requests)
		}
	}
	return total
}
