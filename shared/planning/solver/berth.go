package solver

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// berth is a node as Kubernetes' scheduler sees it in a rehearsal.
type berth struct {
	*existing
	// room is what is left for pods, and cores and bytes are all that there is, which
	// what is left is compared with.
	room         amounts
	cores, bytes float64
	residents    []resident
	// ports are those that are taken in the beginning. A node's own list has those of
	// pods as well that the plan has put there since; who really lands is asked himself.
	ports []planning.HostPort
}

// berth is a node of the world as it stands.
func (st *standing) berth(i int) *berth {
	e := st.w.nodes[i]
	all := st.w.axis.of(e.node.Allocatable)
	return &berth{
		existing: e, room: slices.Clone(st.w.problem.Nodes[i].Room),
		cores: float64(all[0]), bytes: float64(all[1]), residents: slices.Clip(st.residents[i]), ports: slices.Clip(e.node.HostPorts),
	}
}

// launched is a planned node, as the cheapest of its options: it is the likeliest.
func (r *rehearsal) launched(planned *planning.PlannedNode) *berth {
	w := r.st.w
	node := &planning.Node{Name: "planned-" + strconv.Itoa(len(r.berths)), NodePool: planned.NodePool}
	open := planned.Requirements.Intersect(planning.RegistrationLabels)
	e := &existing{node: node, labels: open.Labels(), open: open}
	if i := slices.IndexFunc(w.snapshot.NodePools, func(np karpenter.NodePool) bool { return np.Name == planned.NodePool }); i >= 0 {
		e.taints = w.snapshot.NodePools[i].Spec.Template.Spec.Taints
	}
	all := make(amounts, len(w.axis.names))
	types := r.st.stock.TypesForPool(planned.NodePool, planned.NodeClass)
	if i := slices.IndexFunc(types, func(t instancetypes.Type) bool {
		return len(planned.Offerings) > 0 && t.Name == planned.Offerings[0].InstanceType
	}); i >= 0 {
		all = w.axis.of(types[i].Allocatable)
	}
	out := &berth{existing: e, cores: float64(all[0]), bytes: float64(all[1])}
	out.room = all.minus(w.overhead(e.taints, open))
	return out
}

// party is what is known of pods of one kind in a rehearsal.
type party struct {
	kind *podKind
	need amounts
	// anyOf are the ways in which a node's labels satisfy it; suits remembers of the
	// berths whether they do, and let it in.
	anyOf []planning.Requirements
	suits []bool
	// shy is whether it keeps away from other pods on a node, or they from it; apart
	// remembers from which.
	shy   bool
	apart map[*podKind]bool
	// within are labels whose value has to be that of the planned place.
	within []string
}

// party is that of a kind.
func (r *rehearsal) party(of run) *party {
	if got, ok := r.parties[of.kind]; ok {
		return got
	}
	k := of.kind
	out := &party{kind: k, need: r.st.w.axis.of(run{k, of.pods[:1]}.takes()), within: domainsOf(k.spec), apart: map[*podKind]bool{}}
	out.anyOf, _ = required(k.spec, false)
	out.shy = len(k.spec.HostPorts) > 0 || requiredApart(k.spec.Affinity) != nil || len(r.st.owners.overSet(k.set)) > 0
	r.parties[k] = out
	return out
}

// domainsOf are the labels over which pods are spread or drawn together, or kept
// apart more widely than over host names.
func domainsOf(spec *planning.PodSpec) (out []string) {
	for _, constraint := range spec.Spread {
		if constraint.WhenUnsatisfiable == corev1.DoNotSchedule && !hostname(constraint.TopologyKey) {
			out = append(out, constraint.TopologyKey)
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			out = append(out, t.TopologyKey)
		}
	}
	for _, t := range requiredApart(spec.Affinity) {
		if !hostname(t.TopologyKey) {
			out = append(out, t.TopologyKey)
		}
	}
	return out
}

// letsIn reports whether a berth's labels and taints are good for the party.
func (p *party) letsIn(berths []*berth, i int) bool {
	for k := len(p.suits); k <= i; k++ {
		b := berths[k]
		_, kept := untolerated(b.taints, p.kind.spec.Tolerations, true)
		p.suits = append(p.suits, !kept && slices.ContainsFunc(p.anyOf, b.satisfies))
	}
	return p.suits[i]
}

// apart reports whether two kinds of pods cannot share a node.
func (r *rehearsal) apart(p *party, other *podKind) bool {
	got, known := p.apart[other]
	if !known {
		got = planning.PortsConflict(p.kind.spec.HostPorts, other.spec.HostPorts) || r.avoids(p.kind, other) || r.avoids(other, p.kind)
		p.apart[other] = got
	}
	return got
}

// avoids reports whether a keeps away from nodes with b.
func (r *rehearsal) avoids(a, b *podKind) bool {
	return slices.ContainsFunc(r.shuns(a), func(s selection) bool { return s.picks(b.set) })
}

// shuns are the pods that a kind shares no node with, read once.
func (r *rehearsal) shuns(k *podKind) []selection {
	if got, known := r.shunned[k]; known {
		return got
	}
	var out []selection
	terms := requiredApart(k.spec.Affinity)
	for i := range terms {
		if chosen, err := r.st.w.termSelection(&terms[i], k.spec); err == nil && hostname(terms[i].TopologyKey) {
			out = append(out, chosen)
		}
	}
	r.shunned[k] = out
	return out
}
