package solver

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// nodeInfo is a node as Kubernetes' scheduler sees it in a rehearsal.
type nodeInfo struct {
	*existingNode
	// free is what is left for pods, and cores and bytes are all that there is, which
	// what is left is compared with.
	free          amounts
	cores, memory float64
	residents     []resident
	// hostPorts are those that are taken in the beginning. A node's own list has those of
	// pods as well that the plan has put there since; who really lands is asked himself.
	hostPorts []planning.HostPort
}

// newNodeInfo is a node of the world as it stands.
func (st *baseline) newNodeInfo(i int) *nodeInfo {
	e := st.state.nodes[i]
	all := st.state.resources.toAmounts(e.node.Allocatable)
	return &nodeInfo{
		existingNode: e, free: slices.Clone(st.state.problem.Nodes[i].Room),
		cores: float64(all[0]), memory: float64(all[1]), residents: slices.Clip(st.residents[i]), hostPorts: slices.Clip(e.node.HostPorts),
	}
}

// newPlannedNodeInfo is a planned node, as the cheapest of its options: it is the likeliest.
func (r *schedulerSimulation) newPlannedNodeInfo(planned *planning.PlannedNode) *nodeInfo {
	w := r.baseline.state
	node := &planning.Node{Name: "planned-" + strconv.Itoa(len(r.nodes)), NodePool: planned.NodePool}
	open := planned.Requirements.Intersect(planning.RegistrationLabels)
	e := &existingNode{node: node, labels: open.Labels(), openRequirements: open}
	if i := slices.IndexFunc(w.snapshot.NodePools, func(np karpenter.NodePool) bool { return np.Name == planned.NodePool }); i >= 0 {
		e.taints = w.snapshot.NodePools[i].Spec.Template.Spec.Taints
	}
	all := make(amounts, len(w.resources.names))
	types := r.baseline.types.TypesForPool(planned.NodePool, planned.NodeClass)
	if i := slices.IndexFunc(types, func(t instancetypes.Type) bool {
		return len(planned.Offerings) > 0 && t.Name == planned.Offerings[0].InstanceType
	}); i >= 0 {
		all = w.resources.toAmounts(types[i].Allocatable)
	}
	out := &nodeInfo{existingNode: e, cores: float64(all[0]), memory: float64(all[1])}
	out.free = all.minus(w.daemonOverhead(e.taints, open))
	return out
}

// equivalenceClass is what is known of pods of one kind in a rehearsal.
type equivalenceClass struct {
	kind     *podKind
	requests amounts
	// anyOf are the ways in which a node's labels satisfy it; suits remembers of the
	// berths whether they do, and let it in.
	anyOf   []planning.Requirements
	matches []bool
	// hasConflicts is whether it keeps away from other pods on a node, or they from it; apart
	// remembers from which.
	hasConflicts bool
	conflicts    map[*podKind]bool
	// sameDomainKeys are labels whose value has to be that of the planned place.
	sameDomainKeys []string
}

// findClass is that of a kind.
func (r *schedulerSimulation) findClass(of kindPods) *equivalenceClass {
	if got, ok := r.classes[of.kind]; ok {
		return got
	}
	k := of.kind
	out := &equivalenceClass{kind: k, requests: r.baseline.state.resources.toAmounts(kindPods{k, of.pods[:1]}.sumRequests()), sameDomainKeys: listDomainKeys(k.spec), conflicts: map[*podKind]bool{}}
	out.anyOf, _ = requiredAlternatives(k.spec, false)
	out.hasConflicts = len(k.spec.HostPorts) > 0 || requiredAntiAffinity(k.spec.Affinity) != nil || len(r.baseline.owners.rulesFor(k.set)) > 0
	r.classes[k] = out
	return out
}

// listDomainKeys are the labels over which pods are spread or drawn together, or kept
// apart more widely than over host names.
func listDomainKeys(spec *planning.PodSpec) (out []string) {
	for _, constraint := range spec.Spread {
		if constraint.WhenUnsatisfiable == corev1.DoNotSchedule && !isHostname(constraint.TopologyKey) {
			out = append(out, constraint.TopologyKey)
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			out = append(out, t.TopologyKey)
		}
	}
	for _, t := range requiredAntiAffinity(spec.Affinity) {
		if !isHostname(t.TopologyKey) {
			out = append(out, t.TopologyKey)
		}
	}
	return out
}

// matchesNode reports whether a berth's labels and taints are good for the party.
func (p *equivalenceClass) matchesNode(berths []*nodeInfo, i int) bool {
	for k := len(p.matches); k <= i; k++ {
		b := berths[k]
		_, kept := findUntolerated(b.taints, p.kind.spec.Tolerations, true)
		p.matches = append(p.matches, !kept && slices.ContainsFunc(p.anyOf, b.satisfiesRequirements))
	}
	return p.matches[i]
}

// cannotShareNode reports whether two kinds of pods cannot share a node.
func (r *schedulerSimulation) cannotShareNode(p *equivalenceClass, other *podKind) bool {
	got, known := p.conflicts[other]
	if !known {
		got = planning.PortsConflict(p.kind.spec.HostPorts, other.spec.HostPorts) || r.hasAntiAffinity(p.kind, other) || r.hasAntiAffinity(other, p.kind)
		p.conflicts[other] = got
	}
	return got
}

// hasAntiAffinity reports whether a keeps away from nodes with b.
func (r *schedulerSimulation) hasAntiAffinity(a, b *podKind) bool {
	return slices.ContainsFunc(r.readAntiAffinity(a), func(s selection) bool { return s.matchesSet(b.set) })
}

// readAntiAffinity are the pods that a kind shares no node with, read once.
func (r *schedulerSimulation) readAntiAffinity(k *podKind) []selection {
	if got, known := r.antiAffinity[k]; known {
		return got
	}
	var out []selection
	terms := requiredAntiAffinity(k.spec.Affinity)
	for i := range terms {
		if chosen, err := r.baseline.state.termSelection(&terms[i], k.spec); err == nil && isHostname(terms[i].TopologyKey) {
			out = append(out, chosen)
		}
	}
	r.antiAffinity[k] = out
	return out
}
