package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// assignment is a number of pods of one class with the same domains.
type assignment struct {
	class    *podClass
	feasible *feasibleSet
	pods     []planning.PodRef
	// domains are the domains in which each of the pods is counted.
	domains []domain
	// openDomains are the domains in which the node may still be launched, if its NodeClaim leaves several.
	openDomains []domain
}

type domain struct{ key, value string }

// assignDomains assigns domains to the pods of a class, one by one, until a pod finds none. It counts
// the pods as if they were placed.
func (w *state) assignDomains(c *podClass, shares []assignment) []assignment {
	c.blockedBy = ""
	keys := w.topologyKeys(c)
	if len(keys) == 0 {
		shares = append(shares, assignment{class: c, feasible: c.feasible, pods: c.pods})
		c.pods = nil
		return shares
	}
	at := map[string]int{}
	for len(c.pods) > 0 {
		r, domains, ok := w.chooseDomains(c, keys)
		if !ok {
			break
		}
		i, known := at[r.key]
		if !known {
			i, at[r.key] = len(shares), len(shares)
			shares = append(shares, assignment{class: c, feasible: r, domains: domains})
		}
		shares[i].pods = append(shares[i].pods, c.pods[0])
		c.countAssigned(r.key, 1)
		c.pods = c.pods[1:]
		w.countPods(c, r, domains, 1)
	}
	return shares
}

// mustWait reports whether the class has affinity to pods that are assigned but not packed yet, whose
// final domain is not known. A class that its own affinity selects waits only if an earlier attempt broke an affinity.
func (w *state) mustWait(c *podClass) bool {
	return slices.ContainsFunc(c.rules.groups, func(g *group) bool {
		return g.kind == affinityKind && g.pass == w.topology.pass && (w.othersFirst || !g.members[c.set])
	})
}

// topologyKeys returns the labels for which the class needs a domain: those of its own rules, and
// those of rules that count it.
func (w *state) topologyKeys(c *podClass) []string {
	var out []string
	for _, g := range c.rules.groups {
		out = append(out, g.key)
	}
	for _, g := range c.set.counted {
		if g.hard && w.mayCount(g, c.feasible) {
			out = append(out, g.key)
		}
	}
	if len(out) < 2 {
		return out
	}
	return planning.SortUnique(out)
}

// countPods counts n more pods of the class in its domains, on nodes of the feasible set; n may be
// negative.
func (w *state) countPods(c *podClass, r *feasibleSet, domains []domain, n int) {
	for _, d := range domains {
		for _, g := range c.set.counted {
			if g.key == d.key && w.mayCount(g, r) {
				g.noteOpened(c, d.value, n)
				g.counts[d.value] += n
				if g.isUncertain(r) {
					g.uncertain[d.value] += n
				}
				g.pass = w.topology.pass
			}
		}
		for _, g := range c.rules.groups {
			if g.key == d.key && g.kind != affinityKind && g.hard {
				g.owners[d.value] += n
			}
		}
		if c.domainPods == nil {
			c.domainPods = map[string]int{}
		}
		c.domainPods[d.value] += n
		if w.topology.load[d.key] == nil {
			w.topology.load[d.key] = map[string]int64{}
		}
		w.topology.load[d.key][d.value] += int64(n) * c.loadWeight()
	}
}

// countOpenDomains counts n more pods of the class for anti-affinity in all domains that their NodeClaim may get.
func (w *state) countOpenDomains(c *podClass, domains []domain, n int) {
	for _, d := range domains {
		for _, g := range c.set.counted {
			if g.key == d.key && g.kind == antiAffinityKind {
				g.counts[d.value] += n
			}
		}
		for _, g := range c.rules.groups {
			if g.key == d.key && g.kind == antiAffinityKind && g.hard {
				g.owners[d.value] += n
			}
		}
	}
}

// countAssigned counts n more pods of the class as assigned to a feasible set, by key.
func (c *podClass) countAssigned(reach string, n int) {
	if c.assigned == nil {
		c.assigned = map[string]int{}
	}
	c.assigned[reach] += n
}

// loadWeight is the approximate size of a pod: in millicores, with 4 MiB of memory as one millicore.
func (c *podClass) loadWeight() int64 { return c.requests[0] + c.requests[1]>>22 + 1 }

// domainValues returns all values of a label on existing and buyable nodes, cached.
func (t *topology) domainValues(w *state, key string) []string {
	if got, ok := t.domains[key]; ok {
		return got
	}
	var out []string
	if w.removal != nil {
		out = w.removal.domainValues(key)
	} else {
		out = planning.SortUnique(append(w.offeringValues(key), w.nodeValues(key)...))
	}
	if t.domains == nil {
		t.domains = map[string][]string{}
	}
	t.domains[key] = out
	return out
}

// offeringValues returns the values of a label on buyable nodes. It may contain duplicates.
func (w *state) offeringValues(key string) (out []string) {
	for _, zoneCapacityType := range w.zoneCapacityTypes {
		if value := zoneCapacityType.Label(key); value != "" {
			out = append(out, value)
		}
	}
	for k := range w.candidates {
		c := &w.candidates[k]
		if value, ok := c.labels[key]; ok {
			out = append(out, value)
		} else if k == 0 || w.candidates[k-1].pool != c.pool || w.candidates[k-1].variant != c.variant {
			if finite, ok := c.pool.variants[c.variant][key].ListValues(); ok {
				out = append(out, finite...)
			}
		}
	}
	return out
}

// nodeValues returns the values of a label on existing nodes.
func (w *state) nodeValues(key string) (out []string) {
	for i := range w.problem.Nodes {
		if value, ok := w.nodes[i].domainValue(key); ok {
			out = append(out, value)
		}
	}
	return out
}

// newPodGroup returns the assignment as a packer pod group.
func (w *state) newPodGroup(s *assignment) packing.Group {
	roles, affinityRules := w.listRoles(s.class)
	nodes := w.openNodes(s.feasible.nodes)
	if w.removal != nil {
		nodes = w.removal.filterNodesWithRoom(s.class, nodes)
	}
	return packing.Group{
		Requests: s.class.requests, Candidates: s.feasible.candidates, Nodes: nodes, ZoneCapacityTypes: s.feasible.zoneCapacityTypes,
		Roles: roles, AffinityRules: affinityRules, Count: len(s.pods),
	}
}
