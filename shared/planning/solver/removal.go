package solver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// removal is the question what becomes of the pods of some nodes if those are gone.
// It is a task, whose world is that of all nodes seen without these.
type removal struct {
	standing *standing
	from     *world
	// asked are the nodes by their places in the snapshot, and nodes those of the
	// world.
	asked, nodes []int
	// gone are these nodes and all that were taken before.
	gone packing.Set
	// closed are nodes that stay and take none of the pods.
	closed packing.Set
	moved  []run
}

// remove asks for nodes by their places in the snapshot. Those that are gone or
// going have no pods to be moved.
func (st *standing) remove(nodes []int) *removal {
	r := &removal{standing: st, from: st.w, asked: nodes, gone: slices.Clone(st.gone)}
	for _, j := range nodes {
		if i := st.at[j]; i >= 0 && !r.gone.Has(i) {
			r.gone.Add(i)
			r.nodes = append(r.nodes, i)
		}
	}
	r.move()
	return r
}

// move lists the pods by kind, the oldest first.
func (r *removal) move() {
	known := map[*podKind]int{}
	for _, i := range r.nodes {
		name := r.from.nodes[i].node.Name
		for _, one := range r.standing.runs[i] {
			at, ok := known[one.kind]
			if !ok {
				at, known[one.kind] = len(r.moved), len(r.moved)
				r.moved = append(r.moved, run{kind: one.kind, pods: make([]planning.PodRef, 0, len(one.pods))})
			}
			for _, pod := range one.pods {
				pod.Node = name
				r.moved[at].pods = append(r.moved[at].pods, pod)
			}
		}
	}
	for _, one := range r.moved {
		slices.SortStableFunc(one.pods, func(a, b planning.PodRef) int {
			return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID))
		})
	}
}

// attempt plans once. A panic is a fault of ours.
func (r *removal) attempt(e effort) (result planning.Result, fault *broken) {
	var w *world
	defer func() {
		if cause := recover(); cause != nil {
			fault = blame(w, cause)
		}
	}()
	best := plan(r, e, afterthoughts, &w)
	result = addNodes(best.Result, r.static(w, best.Nodes))
	result.BoundPerHour = 0 // It was not worked out.
	return result, nil
}

// static are the nodes that static pools lack without the removed ones.
func (r *removal) static(w *world, beside []planning.PlannedNode) []planning.PlannedNode {
	if !w.snapshot.Settings.Gates.StaticCapacity {
		return nil
	}
	gone := make(map[int]bool, len(r.asked))
	for _, j := range r.asked {
		gone[j] = true
	}
	return w.staticNodes(r.standing.stock, planning.FindShortfallsWithout(w.snapshot, func(j int) bool { return gone[j] || w.snapshot.Nodes[j].MarkedForDeletion }), beside)
}

func (r *removal) world() *world {
	st, w := r.standing, *r.from
	w.removal = r
	w.reaches, w.looks, w.topology = map[string]*reach{}, map[lookKey]*reach{}, topology{}
	w.stricts, w.classes, w.pods, w.at = nil, nil, 0, nil
	w.problem.Nodes, w.problem.Pools = st.untallied(), r.from.releasing(r.nodes)
	return &w
}

// untallied are the nodes without what the rules of earlier questions made of them.
func (st *standing) untallied() []packing.Node {
	for _, i := range st.tallied {
		st.nodes[i].Tallies = st.nodes[i].Tallies[:0]
	}
	st.tallied = st.tallied[:0]
	if all := st.w.problem.Nodes; len(st.nodes) != len(all) {
		st.nodes = slices.Clone(all) // Rooms are shared: they shrink in place.
	}
	return st.nodes
}

func (r *removal) read(w *world) {
	w.classes = make([]*class, len(r.moved))
	all := make([]class, len(r.moved))
	for i := range r.moved {
		c, k := &all[i], r.moved[i].kind
		c.kind, c.spec, c.pods, c.count = k, k.spec, r.moved[i].pods, len(r.moved[i].pods)
		w.at, w.classes[i] = c, c
		w.pods += c.count
		r.learn(w, c)
		c.need, c.shape, c.wish, c.problem = k.need, k.shape, k.wish, k.problem
		if len(c.spec.Volumes) > 0 {
			c.need = slices.Clone(c.need)
			w.volumes(c)
		}
	}
	w.rankClasses()
}

// learn works out what is known of a kind, from the first class of it.
func (r *removal) learn(w *world, c *class) {
	k := c.kind
	if k.asked++; k.known {
		return
	}
	k.need, k.shape = w.axis.of(k.spec.Requests), w.shapes.of(k.spec)
	c.shape = k.shape
	if k.problem = absurd(k.spec); k.problem == "" {
		k.wish, k.problem = w.wishOf(c)
	}
	k.known = true
}

// open are the nodes that may take a pod.
func (w *world) open(nodes packing.Set) packing.Set {
	if w.removal == nil || len(w.removal.closed) == 0 || !nodes.Overlaps(w.removal.closed) {
		return nodes
	}
	return nodes.Without(w.removal.closed)
}

// isGone reports whether a node is to be gone.
func (w *world) isGone(i int) bool { return w.removal != nil && w.removal.gone.Has(i) }

// remaining is what remains of a reach without the nodes that are gone.
func (r *removal) remaining(w *world, of *reach) *reach {
	out := *of
	out.of, out.narrow = of, nil
	if of.nodes.Overlaps(r.gone) {
		out.nodes = of.nodes.Without(r.gone)
		out.some = out.nodes.Len() > 0 || w.buyable(&out)
	}
	return &out
}

// roomy leaves out nodes that have no room for a pod of the class. That takes a look
// at each of them, and pays off for kinds that are asked for often.
func (r *removal) roomy(c *class, nodes packing.Set) packing.Set {
	k := c.kind
	if k.asked < 2 || len(nodes) == 0 {
		return nodes
	}
	if k.roomy == nil {
		k.roomy = packing.NewSet(len(r.from.problem.Nodes))
		for i := range r.from.problem.Nodes {
			if k.need.fits(r.from.problem.Nodes[i].Room) {
				k.roomy.Add(i)
			}
		}
	}
	return nodes.And(k.roomy)
}

// salesMax bounds how many sales are remembered from one question to the next.
const salesMax = 256

// sales are those that were made before, which are good for any question.
func (r *removal) sales() map[string]sale {
	if len(r.standing.sold) > salesMax {
		r.standing.sold = map[string]sale{}
	}
	return r.standing.sold
}

// values are what a label may be without the nodes that are gone.
func (r *removal) values(key string) []string {
	known, lost := r.standing.values(key), map[string]int{}
	less := false
	for _, i := range r.nodes {
		if value, ok := r.from.nodes[i].domain(key); ok {
			lost[value]++
			less = less || lost[value] == known.nodes[value] && !known.market[value]
		}
	}
	if !less {
		return known.all
	}
	return slices.DeleteFunc(slices.Clone(known.all), func(value string) bool {
		return !known.market[value] && lost[value] == known.nodes[value]
	})
}

// count counts the pods that run and stay in a new group of some term.
func (r *removal) count(g *group, id string, t term, c *class) {
	where := r.from.region(t.spread, c)
	maps.Copy(g.counts, r.standing.counts(id, g.key, t.selection, where))
	chosen := r.standing.chosen(t.selection)
	for _, i := range r.nodes {
		domain, ok := r.from.nodes[i].domain(g.key)
		if !ok || where != nil && !where.nodes.Has(i) {
			continue
		}
		for _, one := range r.standing.residents[i] {
			if chosen.has[one.kind.set] {
				g.counts[domain] -= one.count
			}
		}
		if g.counts[domain] == 0 {
			delete(g.counts, domain)
		}
	}
}

// tally counts the pods that run and stay in a rule over host names.
func (r *removal) tally(w *world, rule int32, s selection) {
	for _, b := range r.standing.chosen(s).bound {
		if !r.gone.Has(b.node) {
			w.tally(b.node, rule).Members += int32(b.count)
		}
	}
}

// addOwners reads the required anti-affinity of pods that run and stay, as far as it
// selects a pod that is moved.
func (r *removal) addOwners(w *world) {
	seen := map[*owner]bool{}
	for _, one := range r.moved {
		for _, rule := range r.standing.owners.overSet(one.kind.set) {
			if !seen[rule] {
				seen[rule] = true
				r.addOwner(w, rule)
			}
		}
	}
}

func (r *removal) addOwner(w *world, rule *owner) {
	at := slices.DeleteFunc(slices.Clone(rule.at), func(o ownedAt) bool { return r.gone.Has(o.node) })
	if len(at) == 0 {
		return // Nobody is left who has it.
	}
	one := term{kind: apartKind, key: rule.key, selection: rule.selection, hard: true}
	if !hostname(rule.key) {
		g := w.group(one, nil)
		g.hard = true
		for _, o := range at {
			if domain, ok := w.nodes[o.node].domain(g.key); ok {
				g.owners[domain] += o.count
			}
		}
		return
	}
	h := w.host(one)
	for _, o := range at {
		if tally := w.tally(o.node, h.id); o.inside {
			tally.Inside += int32(o.count)
		} else {
			tally.Outside += int32(o.count)
		}
	}
}

// eachPort visits the nodes that may have given away a host port. To those that are
// gone nobody goes anyway.
func (r *removal) eachPort(port int32, visit func(i int)) {
	for _, i := range r.standing.ports[port] {
		visit(i)
	}
}
