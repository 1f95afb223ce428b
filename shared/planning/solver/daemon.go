package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// daemon is the pod of a DaemonSet, which takes capacity on each node that runs it.
type daemon struct {
	spec     *planning.PodSpec
	requests amounts
	anyOf    []planning.Requirements
	// candidates and zoneCapacityTypes are those whose nodes run the daemon.
	candidates        packing.Set
	zoneCapacityTypes uint64
	// set has the daemon's labels, and repelled are the pods that cannot be on its node.
	set      *labelSet
	repelled []selection
}

// addDaemons subtracts the requests of daemons from the room of candidates, and from nodes where the
// daemons do not run yet. Their capacity ignores startup taints, and the daemons' rules over other pods.
func (w *state) addDaemons() {
	for i := range w.snapshot.DaemonSets {
		spec := &w.snapshot.DaemonSets[i]
		anyOf, problem := affinityAlternatives(spec)
		if problem != "" {
			continue // No node can run it, so it takes no room.
		}
		d := daemon{
			spec: spec, requests: w.resources.toAmounts(spec.Requests), anyOf: anyOf, candidates: packing.NewSet(len(w.candidates)),
			set: &labelSet{namespace: spec.Namespace, labels: spec.Labels}, repelled: w.repelledOnHost(spec),
		}
		for j, want := range anyOf {
			r := &feasibleSet{requirements: want, tolerations: spec.Tolerations, relaxed: true}
			d.zoneCapacityTypes |= w.zoneCapacityTypesFor(want)
			if candidates := w.candidatesFor(r); j == 0 {
				d.candidates = candidates
			} else {
				d.candidates = d.candidates.Union(candidates)
			}
		}
		d.candidates.Each(func(k int) bool {
			amounts(w.problem.Candidates[k].Allocatable).subtract(d.requests)
			return true
		})
		w.daemons = append(w.daemons, d)
	}
	for i := range w.problem.Nodes {
		w.reserveForDaemons(i)
	}
}

// reserveForDaemons subtracts the requests of daemons that do not run on the node yet.
func (w *state) reserveForDaemons(i int) {
	e, expected := w.nodes[i], make(amounts, len(w.resources.names))
	for _, d := range w.daemons {
		if _, kept := findUntolerated(e.taints, d.spec.Tolerations, true); !kept && e.runsDaemon(d) {
			expected = expected.plus(d.requests)
		}
	}
	coming := expected.minus(w.resources.toAmounts(e.node.DaemonRequests)).maximum(make(amounts, len(w.resources.names)))
	amounts(w.problem.Nodes[i].Free).subtract(coming)
}

// runsDaemon reports whether the daemon will run on the node. For a NodeClaim that is not launched it
// is enough that it could: the NodeClaim was planned that way.
func (e *existingNode) runsDaemon(d daemon) bool {
	if e.openRequirements != nil {
		return d.canRunOn(e.openRequirements)
	}
	return slices.ContainsFunc(d.anyOf, e.satisfiesRequirements)
}

// canRunOn reports whether the daemon could run on a node with these requirements.
func (d daemon) canRunOn(r planning.Requirements) bool {
	return slices.ContainsFunc(d.anyOf, r.IsCompatible)
}

// daemonOverhead returns the requests of all daemons on a node of a pool with these requirements.
func (w *state) daemonOverhead(taints []corev1.Taint, r planning.Requirements) amounts {
	total, r := make(amounts, len(w.resources.names)), r.Intersect(planning.RegistrationLabels)
	for _, d := range w.daemons {
		if _, kept := findUntolerated(taints, d.spec.Tolerations, true); !kept && d.canRunOn(r) {
			total = total.plus(d.requests)
		}
	}
	return total
}
