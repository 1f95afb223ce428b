package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// share is a number of a class's pods that were given the same domains.
type share struct {
	class *class
	reach *reach
	pods  []planning.PodRef
	// domains are what was counted for each of them.
	domains []domain
}

type domain struct{ key, value string }

// assign gives the pods of a class their domains, one by one, until one finds
// none. It counts them as if they were placed.
func (w *world) assign(c *class, shares []share) []share {
	c.stuck = ""
	keys := w.keysOf(c)
	if len(keys) == 0 {
		shares = append(shares, share{class: c, reach: c.reach, pods: c.pods})
		c.pods = nil
		return shares
	}
	at := map[string]int{}
	for len(c.pods) > 0 {
		r, domains, ok := w.choose(c, keys)
		if !ok {
			break
		}
		i, known := at[r.key]
		if !known {
			i, at[r.key] = len(shares), len(shares)
			shares = append(shares, share{class: c, reach: r, domains: domains})
		}
		shares[i].pods = append(shares[i].pods, c.pods[0])
		c.hold(r.key, 1)
		c.pods = c.pods[1:]
		w.count(c, r, domains, 1)
	}
	return shares
}

// waits reports whether a class must stand beside pods that have been assigned and
// not packed yet: where those end up is not certain. One that selects itself is its
// own company.
func (w *world) waits(c *class) bool {
	return slices.ContainsFunc(c.own.groups, func(g *group) bool {
		return g.kind == besideKind && g.pass == w.topology.pass && !g.members[c.set]
	})
}

// keysOf are the labels of which the class must be given a value: those that its
// own rules speak of, and those over which others count it.
func (w *world) keysOf(c *class) []string {
	var out []string
	for _, g := range c.own.groups {
		out = append(out, g.key)
	}
	for _, g := range c.set.counted {
		if g.hard && w.mayCount(g, c.reach) {
			out = append(out, g.key)
		}
	}
	if len(out) < 2 {
		return out
	}
	return planning.SortUnique(out)
}

// count adds n pods of the class, which go to nodes of a reach, to its domains; n may
// be negative.
func (w *world) count(c *class, r *reach, domains []domain, n int) {
	for _, d := range domains {
		for _, g := range c.set.counted {
			if g.key == d.key && w.mayCount(g, r) {
				g.noteOpened(c, d.value, n)
				g.counts[d.value] += n
				g.pass = w.topology.pass
			}
		}
		for _, g := range c.own.groups {
			if g.key == d.key && g.kind != besideKind && g.hard {
				g.owners[d.value] += n
			}
		}
		if c.placed == nil {
			c.placed = map[string]int{}
		}
		c.placed[d.value] += n
		if w.topology.load[d.key] == nil {
			w.topology.load[d.key] = map[string]int64{}
		}
		w.topology.load[d.key][d.value] += int64(n) * c.weight()
	}
}

// hold counts pods of the class in a place.
func (c *class) hold(reach string, n int) {
	if c.held == nil {
		c.held = map[string]int{}
	}
	c.held[reach] += n
}

// weight is roughly what a pod takes: thousandths of a core, and 4 GiB for one.
func (c *class) weight() int64 { return c.need[0] + c.need[1]>>22 + 1 }

// values are all that a label may be, on a node that exists or could be bought.
func (t *topology) values(w *world, key string) []string {
	if got, ok := t.domains[key]; ok {
		return got
	}
	var out []string
	if w.removal != nil {
		out = w.removal.values(key)
	} else {
		out = planning.SortUnique(append(w.marketValues(key), w.nodeValues(key)...))
	}
	if t.domains == nil {
		t.domains = map[string][]string{}
	}
	t.domains[key] = out
	return out
}

// marketValues are all that a label may be on a node that could be bought, some of
// them often.
func (w *world) marketValues(key string) (out []string) {
	for _, plane := range w.planes {
		if value := plane.Label(key); value != "" {
			out = append(out, value)
		}
	}
	for k := range w.columns {
		c := &w.columns[k]
		if value, ok := c.labels[key]; ok {
			out = append(out, value)
		} else if k == 0 || w.columns[k-1].pool != c.pool || w.columns[k-1].variant != c.variant {
			if finite, ok := c.pool.variants[c.variant][key].ListValues(); ok {
				out = append(out, finite...)
			}
		}
	}
	return out
}

// nodeValues are what a label is on the nodes that exist.
func (w *world) nodeValues(key string) (out []string) {
	for i := range w.problem.Nodes {
		if value, ok := w.nodes[i].domain(key); ok {
			out = append(out, value)
		}
	}
	return out
}

// lot is the share in the packer's words.
func (w *world) lot(s *share) packing.Lot {
	marks, beside := w.marks(s.class)
	nodes := w.open(s.reach.nodes)
	if w.removal != nil {
		nodes = w.removal.roomy(s.class, nodes)
	}
	return packing.Lot{
		Need: s.class.need, Columns: s.reach.columns, Nodes: nodes, Planes: s.reach.planes,
		Marks: marks, Beside: beside, Count: len(s.pods),
	}
}
