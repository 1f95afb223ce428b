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

// kind is what a group asks for.
type kind int

const (
	spreadKind kind = iota
	besideKind
	apartKind
)

// group is one rule over the values of a label.
type group struct {
	id        int
	kind      kind
	key       string
	members   map[*labelSet]bool
	skew, min int
	// where is what its owners ask of nodes: only such domains and nodes count for
	// spread, by the node policies. nil for everywhere.
	where *region
	// everywhere says that domains count which the owners could not go to.
	everywhere bool
	// tolerated says that nodes do not count whose taints the owners do not tolerate.
	tolerated bool
	// labels are those that nodes must have to count for spread.
	labels []string
	// pass is the last in which pods were assigned that it counts and that are not
	// packed yet.
	pass int
	// counts are the members by domain, and owners those that obey the rule there.
	counts, owners map[string]int
	// sought are the domains to which others would follow its members.
	sought map[string]bool
	// hard is whether some owner requires it.
	hard bool
	// opened is the domain that a pod with this affinity opened, while no pod without it
	// is there.
	opened *string
}

// hostRule is one rule over host names.
type hostRule struct {
	id   int32
	kind kind
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
func (w *world) addTopology() {
	t := &w.topology
	t.groups, t.hosts, t.load = map[string]*group{}, map[string]*hostRule{}, map[string]map[string]int64{}
	for _, c := range w.classes {
		c.set = t.sets.of(c.spec.Namespace, c.spec.Labels)
		c.set.pending = c.set.pending || len(c.pods) > 0
	}
	if w.removal != nil {
		t.sets.beside = &w.removal.from.topology.sets
	} else {
		w.eachBound(func(node, count int, bound *planning.PodSpec) {
			set := t.sets.of(bound.Namespace, bound.Labels)
			set.bound = append(set.bound, boundPods{node, count})
		})
	}
	for _, c := range w.classes {
		if w.at = c; c.problem == "" {
			w.look(c)
		}
	}
	w.at = nil
	if w.removal != nil {
		w.removal.addOwners(w)
	} else {
		w.addBoundOwners()
	}
	w.addPorts()
	w.problem.Rules = make([]packing.Rule, 0, len(t.order))
	for _, h := range t.order {
		w.problem.Rules = append(w.problem.Rules, h.rule())
	}
}
