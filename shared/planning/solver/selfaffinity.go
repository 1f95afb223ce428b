package solver

import "slices"

// opensDomain reports whether the class is selected by its own required affinity, so that its first
// pod may open a domain.
func (g *group) opensDomain(c *podClass) bool {
	return g.kind == affinityKind && g.hard && g.members[c.set]
}

// mustYield reports whether the class has a self-affinity and must not choose its domain yet: some
// other waiting pods that the affinity selects cannot follow to each domain that the class could
// choose. kube-scheduler may bind those pods first, and then allows the class only in their domain.
func (w *state) mustYield(c *podClass, waiting []*podClass) bool {
	return slices.ContainsFunc(c.rules.groups, func(g *group) bool {
		return g.opensDomain(c) && g.countMembers() == 0 && g.hasMember(func(d *podClass) bool { return w.mustPrecede(d, c, g) && slices.Contains(waiting, d) })
	})
}

// mustPrecede reports whether pods d, which group g selects, must be placed before c: they
// cannot go to some domain that c can use, or did not follow it in an earlier attempt.
func (w *state) mustPrecede(d, c *podClass, g *group) bool {
	if len(d.pods) == 0 || d.problem != "" {
		return false
	}
	if w.othersFirst && !d.hasRequiredAffinity() {
		return true
	}
	if d.failed {
		return false
	}
	return slices.ContainsFunc(w.topology.domainValues(w, g.key), func(value string) bool {
		return w.narrowToValue(c.feasible, g.key, value).nonEmpty && !w.narrowToValue(d.feasible, g.key, value).nonEmpty
	})
}

// hasOtherMember reports whether the class has a required affinity over host names, and waiting pods of other classes meet
// all of them. kube-scheduler may bind those first, and then allows the class only on their nodes. Pods with a required
// affinity of their own do not count: the class may open a node for them.
func (c *podClass) hasOtherMember(waiting []*podClass) bool {
	var own []*hostRule
	for _, h := range c.rules.hosts {
		if h.kind == affinityKind && !h.soft {
			own = append(own, h)
		}
	}
	return len(own) > 0 && slices.ContainsFunc(waiting, func(d *podClass) bool {
		return d != c && !d.hasRequiredAffinity() && !slices.ContainsFunc(own, func(h *hostRule) bool { return !slices.Contains(d.set.hosts, h) })
	})
}

// hasRequiredAffinity reports whether the class has a required affinity to other pods.
func (c *podClass) hasRequiredAffinity() bool {
	a := c.spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// noteOpened records the domain that a pod with self-affinity opens, and counts the other pods there. A pod that the affinity
// selects may be bound first, and must not open another domain.
func (g *group) noteOpened(c *podClass, value string, n int) {
	owner := slices.Contains(c.rules.groups, g)
	switch {
	case n > 0 && owner && g.opensDomain(c) && g.countMembers() == 0:
		g.openedDomain, g.followers = &value, 0
	case g.countMembers()+n == 0:
		g.openedDomain = nil
	case g.openedDomain != nil && *g.openedDomain == value && !owner:
		g.followers += n
	}
}

// breaksAffinity reports whether pods with self-affinity are in a domain where they may not be: they opened it, and pods
// without affinity that it selects went only to other domains, so that kube-scheduler may bind those first; or they followed
// pods that were taken back afterwards.
func (w *state) breaksAffinity() bool {
	for _, g := range w.topology.groups {
		if g.openedDomain != nil && g.followers == 0 && g.counts[*g.openedDomain] > 0 && g.hasFreeMember() || g.hasLeftFollowers() {
			return true
		}
	}
	return false
}

// hasLeftFollowers reports whether pods with self-affinity are the only members of the group in a domain that they did not open.
func (g *group) hasLeftFollowers() bool {
	if g.kind != affinityKind || !g.hard {
		return false
	}
	own := map[string]int{}
	for set := range g.members {
		for _, c := range set.classes {
			if slices.Contains(c.rules.groups, g) {
				for value, n := range c.domainPods {
					own[value] += n
				}
			}
		}
	}
	for value, n := range own {
		if n > 0 && n == g.counts[value] && (g.openedDomain == nil || *g.openedDomain != value) {
			return true
		}
	}
	return false
}

// hasFreeMember reports whether pods without affinity that the group selects are placed.
func (g *group) hasFreeMember() bool {
	return g.hasMember(func(d *podClass) bool {
		if d.hasRequiredAffinity() {
			return false
		}
		for value, n := range d.domainPods {
			if n > 0 && g.counts[value] > 0 {
				return true
			}
		}
		return false
	})
}
