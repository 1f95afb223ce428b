package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// topology holds the rules between pods. Rules over host names go to the packer, which knows what
// shares a node. Rules over wider domains (zones, capacity types, any other label) are applied before
// packing: each pod gets its domains first, and may then only go to nodes in them.
type topology struct {
	sets   labelSets
	groups map[string]*group
	hosts  map[string]*hostRule
	order  []*hostRule
	// load is the load planned into each domain, so that equally good domains fill evenly.
	load map[string]map[string]int64
	// domains caches the values of each label.
	domains map[string][]string
	// pass numbers the rounds of assignment between two packings.
	pass int
}

// ruleKind is the kind of a rule: spread, affinity or anti-affinity.
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
	// region is where the rule counts pods for spread, by its node policies; nil for everywhere.
	region *region
	// ignoresNodeAffinity is true if domains count even where the owners' node affinity does not allow
	// them.
	ignoresNodeAffinity bool
	// honorsTaints is true if nodes with taints that the owners do not tolerate do not count.
	honorsTaints bool
	// labels are the labels that nodes must have to count for spread.
	labels []string
	// pass is the last one in which pods that it counts were assigned.
	pass int
	// counts are the members by domain, and owners the pods with the rule by domain.
	counts, owners map[string]int
	// uncertain are the pods in counts that may be placed on nodes that do not count.
	uncertain map[string]int
	// soughtDomains caches the results of isSoughtDomain.
	soughtDomains map[string]bool
	// hard is true if the rule is required.
	hard bool
	// openedDomain is the domain that a pod with this affinity opened, and followers are how many selected pods without it are
	// there.
	openedDomain *string
	followers    int
}

// hostRule is one rule over host names.
type hostRule struct {
	id   int32
	kind ruleKind
	skew int
	// soft rules bind only their owners.
	soft bool
	// port is set if the rule is for a host port; its members are the pods with that port.
	port *planning.HostPort
}

// ownTerms are the rules of a class under its current preferences.
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
		c.set.pending, c.set.classes = c.set.pending || len(c.pods) > 0, append(c.set.classes, c)
	}
	var repelling []repellingPods
	if w.removal != nil {
		t.sets.baseline = &w.removal.state.topology.sets
	} else {
		repelling = w.findRepellingPods()
		w.addBoundPods(repelling)
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
		w.addBoundAntiAffinity(repelling)
	}
	w.addHostPorts()
	w.problem.Rules = make([]packing.Rule, 0, len(t.order))
	for _, h := range t.order {
		w.problem.Rules = append(w.problem.Rules, h.packerRule())
	}
}
