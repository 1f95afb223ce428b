package solver

import "slices"

// opens reports whether the group's rule lets a pod that it selects itself be the first
// of its domain.
func (g *group) opens(c *class) bool { return g.kind == besideKind && g.hard && g.members[c.set] }

// yields reports whether the class has a self-affinity and must not choose its domain
// yet: some other waiting pods that the affinity selects cannot follow to each domain
// that the class could choose. kube-scheduler may bind those first, and lets the class
// go only to them then.
func (w *world) yields(c *class, waiting []*class) bool {
	return slices.ContainsFunc(c.own.groups, func(g *group) bool {
		return g.opens(c) && g.total() == 0 && slices.ContainsFunc(waiting, func(d *class) bool { return w.mustPrecede(d, c, g) })
	})
}

// mustPrecede reports whether waiting pods that a group selects go first: they do not
// have its rule, and cannot go to some domain to which pods that have it can.
func (w *world) mustPrecede(d, c *class, g *group) bool {
	if !g.members[d.set] || len(d.pods) == 0 || d.failed || d.problem != "" || d.reach == c.reach || slices.Contains(d.own.groups, g) {
		return false
	}
	return slices.ContainsFunc(w.topology.values(w, g.key), func(value string) bool {
		return w.narrowed(c.reach, g.key, value).some && !w.narrowed(d.reach, g.key, value).some
	})
}

// noteOpened keeps which domain was opened by a pod with self-affinity, until another
// pod that the affinity selects is there: it may be bound first, and must not be the
// first of another domain.
func (g *group) noteOpened(c *class, value string, n int) {
	owner := slices.Contains(c.own.groups, g)
	switch {
	case n > 0 && owner && g.opens(c) && g.total() == 0:
		g.opened = &value
	case n > 0 && !owner && g.opened != nil && *g.opened == value, n < 0 && g.total()+n == 0:
		g.opened = nil
	}
}
