package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// topology is what pods say of each other. Rules over host names go to the packer,
// which knows what shares a node. Rules over wider domains (zones, capacity types,
// any other label) are settled before: each pod is given its domains first, and
// may then go only to nodes of those.
type topology struct {
	sets   labelSets
	groups map[string]*group
	hosts  map[string]*hostRule
	order  []*hostRule
	// load is what has been planned into a domain, so that domains of one rank fill
	// up alike.
	load map[string]map[string]int64
	// domains are the values of each label that was asked for.
	domains map[string][]string
	// pass numbers the assignments between two packings.
	pass int
}

// ruleKind is what a group asks for.
type ruleKind int

const (
	spreadKind ruleKind = iota
	affinityKind
	antiAffinityKind
)

// group is one rule over the values of a label.
type group struct {
	id        int
	kind      ruleKind
	key       string
	members   map[*labelSet]bool
	skew, min int
	// region is what its owners ask of nodes: only such domains and nodes count for
	// spread, by the node policies. nil for everywhere.
	region *region
	// ignoresNodeAffinity says that domains count which the owners could not go to.
	ignoresNodeAffinity bool
	// honorsTaints says that nodes do not count whose taints the owners do not tolerate.
	honorsTaints bool
	// labels are those that nodes must have to count for spread.
	labels []string
	// pass is the last in which pods were assigned that it counts and that are not
	// packed yet.
	pass int
	// counts are the members by domain, and owners those that obey the rule there.
	counts, owners map[string]int
	// soughtDomains are the domains to which others would follow its members.
	soughtDomains map[string]bool
	// hard is whether some owner requires it.
	hard bool
	// openedDomain is the domain that a pod with this affinity opened, while no pod without it
	// is there.
	openedDomain *string
}

// hostRule is one rule over host names.
type hostRule struct {
	id   int32
	kind ruleKind
	skew int
	// soft rules bind only those who own them.
	soft bool
	// port is set for a host port, which counts pods by their ports.
	port *planning.HostPort
}

// ownTerms are the rules that a class owns as its wish stands.
type ownTerms struct {
	groups []*group
	hosts  []*hostRule
}

// addTopology reads the rules of all pods.
func (w *state) addTopology() {
	t := &w.topology
	t.groups, t.hosts, t.load = map[string]*group{}, map[string]*hostRule{}, map[string]map[string]int64{}
	for _, c := range w.classes {
		c.set = t.sets.findSet(c.spec.Namespace, c.spec.Labels)
		c.set.pending = c.set.pending || len(c.pods) > 0
	}
	if w.removal != nil {
		t.sets.baseline = &w.removal.state.topology.sets
	} else {
		w.visitBoundPods(func(node, count int, bound *planning.PodSpec) {
			set := t.sets.findSet(bound.Namespace, bound.Labels)
			set.bound = append(set.bound, boundPods{node, count})
		})
	}
	for _, c := range w.classes {
		if w.currentClass = c; c.problem == "" {
			w.findFeasible(c)
		}
	}
	w.currentClass = nil
	if w.removal != nil {
		w.removal.addAntiAffinity(w)
	} else {
		w.addBoundAntiAffinity()
	}
	w.addHostPorts()
	w.problem.Rules = make([]packing.Rule, 0, len(t.order))
	for _, h := range t.order {
		w.problem.Rules = append(w.problem.Rules, h.packerRule())
	}
}
