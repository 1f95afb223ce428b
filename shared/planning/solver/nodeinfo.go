package solver

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// nodeInfo is a node as the simulated kube-scheduler sees it.
type nodeInfo struct {
	*existingNode
	// free is the free capacity for pods; cores and memory are the allocatable totals.
	free          amounts
	cores, memory float64
	residents     []resident
	// hostPorts are the host ports in use at the start. The node's own list also has the ports of pods
	// that the plan placed later, but the simulation may place those elsewhere.
	hostPorts []planning.HostPort
}

// newNodeInfo returns a node of the state as it is now.
func (st *baseline) newNodeInfo(i int) *nodeInfo {
	e := st.state.nodes[i]
	all := st.state.resources.toAmounts(e.node.Allocatable)
	return &nodeInfo{
		existingNode: e, free: slices.Clone(st.state.problem.Nodes[i].Free),
		cores: float64(all[0]), memory: float64(all[1]), residents: slices.Clip(st.residents[i]), hostPorts: slices.Clip(e.node.HostPorts),
	}
}

// newPlannedNodeInfo returns a planned node as its cheapest offering, which is the most likely.
func (r *schedulerSimulation) newPlannedNodeInfo(planned *planning.PlannedNode) *nodeInfo {
	w := r.baseline.state
	node := &planning.Node{Name: "planned-" + strconv.Itoa(len(r.nodes)), NodePool: planned.NodePool}
	open := planned.Requirements.Intersect(planning.RegistrationLabels)
	e := &existingNode{node: node, openRequirements: open}
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

// equivalenceClass holds what the simulation caches for pods of one kind.
type equivalenceClass struct {
	kind     *podKind
	requests amounts
	// anyOf are the alternatives for the required node labels. matches caches, by node, whether labels
	// and taints allow the pods: 1 if they do, -1 if they do not, and 0 if that is not known yet.
	anyOf   []planning.Requirements
	matches []int8
	// hasConflicts is true if other pods on a node may exclude these pods, or these pods them.
	// conflicts caches which kinds do.
	hasConflicts bool
	conflicts    map[*podKind]bool
	// sameDomainKeys are the topology keys whose value must equal that of the planned node.
	sameDomainKeys []string
}

// findClass returns the equivalence class of a kind.
func (r *schedulerSimulation) findClass(of kindPods) *equivalenceClass {
	if got, ok := r.classes[of.kind]; ok {
		return got
	}
	k := of.kind
	out := &equivalenceClass{kind: k, requests: r.baseline.state.resources.toAmounts(kindPods{k, of.pods[:1]}.sumRequests()), sameDomainKeys: listDomainKeys(k.spec), conflicts: map[*podKind]bool{}}
	out.anyOf, _ = requiredAlternatives(k.spec)
	out.hasConflicts = len(k.spec.HostPorts) > 0 || requiredAntiAffinity(k.spec.Affinity) != nil || len(r.baseline.owners.rulesFor(k.set)) > 0
	r.classes[k] = out
	return out
}

// listDomainKeys returns the topology keys of required spread, affinity and anti-affinity. Spread and
// anti-affinity over host names are left out.
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

// matchesNode reports whether the labels and taints of a node allow the class.
func (p *equivalenceClass) matchesNode(berths []*nodeInfo, i int) bool {
	if i >= len(p.matches) {
		p.matches = append(p.matches, make([]int8, len(berths)-len(p.matches))...)
	}
	if p.matches[i] == 0 {
		p.matches[i] = -1
		if _, kept := findUntolerated(berths[i].taints, p.kind.spec.Tolerations, true); !kept && slices.ContainsFunc(p.anyOf, berths[i].satisfiesRequirements) {
			p.matches[i] = 1
		}
	}
	return p.matches[i] > 0
}

// cannotShareNode reports whether two kinds of pods exclude each other from a node.
func (r *schedulerSimulation) cannotShareNode(p *equivalenceClass, other *podKind) bool {
	got, known := p.conflicts[other]
	if !known {
		got = planning.PortsConflict(p.kind.spec.HostPorts, other.spec.HostPorts) || r.hasAntiAffinity(p.kind, other) || r.hasAntiAffinity(other, p.kind)
		p.conflicts[other] = got
	}
	return got
}

// hasAntiAffinity reports whether a has required anti-affinity over host names to b.
func (r *schedulerSimulation) hasAntiAffinity(a, b *podKind) bool {
	return slices.ContainsFunc(r.readAntiAffinity(a), func(s selection) bool { return s.matchesSet(b.set) })
}

// readAntiAffinity returns the pods that a kind cannot share a node with, cached.
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
