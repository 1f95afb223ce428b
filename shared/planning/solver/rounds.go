package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// roundsMax bounds how often what found no place is tried again. Each round but
// the last relaxes something, closes a domain or places a pod.
const roundsMax = 1000

// secondThoughts is what may be spent on all rounds but the first, in the packer's
// steps, if that is more than the first took. Pods that limits leave out could be
// tried again for as long as some small one still finds a place.
const secondThoughts = 20e6

// rounds packs the classes, and what found no place again after its wishes were
// relaxed.
type rounds struct {
	w      *world
	packer *packing.Packer
	// shares are the packer's lots, by number.
	shares []share
	// short are places that took fewer pods than they were given, and how many.
	short map[place]int
	// sales are what was sold already, by what was chosen from; saleKey and chosen are
	// memory for making them.
	sales   map[string]sale
	saleKey []byte
	chosen  []shelved
	// placed is whether the last round placed any pod.
	placed bool
}

func newRounds(w *world) *rounds {
	r := &rounds{w: w, packer: packing.New(w.problem), short: map[place]int{}}
	if w.removal != nil {
		r.sales = w.removal.sales()
	} else {
		r.sales = map[string]sale{}
	}
	return r
}

func (r *rounds) run() {
	r.pin()
	var waiting []*class
	for _, c := range r.w.classes {
		if c.problem == "" && len(c.pods) > 0 {
			waiting = append(waiting, c)
		}
	}
	for round, most := 0, 0; len(waiting) > 0 && round < roundsMax && (round == 0 || r.packer.Steps() <= most); round++ {
		r.round(waiting)
		if round == 0 {
			most = r.packer.Steps() + max(r.packer.Steps(), secondThoughts)
		}
		waiting = slices.DeleteFunc(waiting, func(c *class) bool { return len(c.pods) == 0 || !r.again(c) })
	}
	r.packer.Finish()
}

// round gives the waiting pods their domains and packs them. Pods that must stand
// beside others get theirs when those are packed.
func (r *rounds) round(waiting []*class) {
	r.placed = false
	for _, c := range waiting {
		c.failed = false
	}
	for range roundsMax {
		r.w.topology.pass++
		shares := r.assign(waiting)
		if len(shares) == 0 {
			return
		}
		for _, rank := range r.ranked(shares) {
			r.pack(rank)
		}
	}
}

// assign goes through the waiting classes until none of them finds a domain. Classes
// that yield to others come when nothing else finds one.
func (r *rounds) assign(waiting []*class) []share {
	shares := make([]share, 0, len(waiting))
	for progress, yielding := true, true; progress; {
		before, yielded := len(shares), false
		shares, yielded = r.assignOnce(waiting, yielding, shares)
		progress = len(shares) > before && len(r.w.topology.groups) > 0
		if !progress && yielded {
			progress, yielding = true, false
		}
	}
	r.w.at = nil
	return shares
}

// assignOnce goes through the waiting classes once.
func (r *rounds) assignOnce(waiting []*class, yielding bool, shares []share) (all []share, yielded bool) {
	for _, c := range boundFirst(waiting) {
		r.w.at = c
		switch {
		case len(c.pods) == 0 || c.failed || !r.feasible(c) || r.w.waits(c):
		case yielding && r.w.yields(c, waiting):
			yielded = true
		default:
			shares = r.w.assign(c, shares)
		}
	}
	return shares, yielded
}

// ranked splits shares by the priority of their pods, the highest first, if that
// is to count; Karpenter does not look at it. Pods of buffers do not
// exist, and come after all that do.
func (r *rounds) ranked(shares []share) [][]share {
	rank := func(s share) int32 { return r.w.priority(s.class.spec) }
	var out [][]share
	slices.SortStableFunc(shares, func(a, b share) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.class.rank, b.class.rank))
	})
	for from, i := 0, 1; i <= len(shares); i++ {
		if i == len(shares) || rank(shares[i]) != rank(shares[from]) {
			out, from = append(out, shares[from:i]), i
		}
	}
	return out
}

// priority is that of a pod as far as it counts.
func (w *world) priority(spec *planning.PodSpec) int32 {
	if w.snapshot.Settings.PlanByPriority || spec.Priority == planning.BufferPriority {
		return spec.Priority
	}
	return 0
}

// shareSteps is what finding the domains of a share takes, in the packer's steps.
const shareSteps = 500

// pack hands shares to the packer, and takes back what found no place.
func (r *rounds) pack(shares []share) {
	r.packer.Spend(shareSteps * len(shares))
	lots := make([]packing.Lot, len(shares))
	for i := range shares {
		lots[i] = r.w.lot(&shares[i])
	}
	first := r.packer.Pack(lots)
	r.shares = append(r.shares, shares...)
	for i := range shares {
		r.settle(first + i)
	}
}

// feasible relaxes the class until something could hold it, or nothing is left to
// relax: there is no need to pack in order to see that.
func (r *rounds) feasible(c *class) bool {
	for !c.reach.some || !r.w.fits(c, c.reach) {
		if !c.wish.relax(r.w.soft) {
			return false
		}
		r.w.look(c)
	}
	return c.problem == ""
}

// settle takes back the pods of a lot that found no place.
func (r *rounds) settle(lot int) {
	s := &r.shares[lot]
	left := r.packer.Left(lot)
	if left < len(s.pods) {
		r.placed = true
	}
	if left == 0 {
		return
	}
	c, kept := s.class, len(s.pods)-left
	c.failed = true
	r.w.count(c, s.reach, s.domains, -left)
	c.pods = append(slices.Clone(s.pods[kept:]), c.pods...)
	s.pods = s.pods[:kept]
	if len(r.w.keysOf(c)) > 0 {
		c.hold(s.reach.key, -left)
		r.short[place{c.spec, s.reach.key}] = c.held[s.reach.key]
		if c.closed == nil {
			c.closed = map[string]bool{}
		}
		c.closed[s.reach.key] = true
		c.stuck = ""
	}
	r.packer.Drop(lot)
}

// again reports whether another round could place more of the class: in another
// domain, after a relaxation, or beside pods that were placed meanwhile.
func (r *rounds) again(c *class) bool {
	r.w.at = c
	if c.problem != "" {
		return false
	}
	if len(c.closed) > 0 && c.stuck == "" {
		c.stuck = "closed"
		return true
	}
	if c.wish.relax(r.w.soft) {
		c.closed = nil
		r.w.look(c)
		return c.problem == ""
	}
	return r.placed && len(c.own.groups)+len(c.own.hosts) > 0
}

// pin puts pods on the claims that were made for them. To find such a place again
// by trying would be luck: a claim is planned to be full.
func (r *rounds) pin() {
	if r.w.removal != nil {
		return // What claims are for has been put there before.
	}
	expected := map[string]int{}
	for i := range r.w.problem.Nodes {
		for _, uid := range r.w.nodes[i].node.ExpectedPods {
			expected[uid] = i
		}
	}
	if len(expected) == 0 {
		return
	}
	var shares []share
	for _, c := range r.w.classes {
		if r.w.at = c; c.problem == "" {
			shares = append(shares, r.pinned(c, expected)...)
		}
	}
	r.w.at = nil
	r.pack(shares)
	for _, c := range r.w.classes {
		c.closed, c.stuck = nil, ""
	}
}

// pinned takes the expected pods out of a class.
func (r *rounds) pinned(c *class, expected map[string]int) (out []share) {
	byNode := map[int]int{}
	var rest []planning.PodRef
	for _, pod := range c.pods {
		node, ok := expected[pod.UID]
		if !ok {
			rest = append(rest, pod)
			continue
		}
		at, known := byNode[node]
		if !known {
			one, ok := r.w.only(c, node)
			if !ok {
				rest = append(rest, pod)
				continue
			}
			at, byNode[node] = len(out), len(out)
			out = append(out, one)
		}
		out[at].pods = append(out[at].pods, pod)
		r.w.count(c, out[at].reach, out[at].domains, 1)
	}
	if len(out) > 0 {
		c.pods = rest
	}
	return out
}

// only is the share of a class that goes to one node; false when that node is not
// for the class any more.
func (w *world) only(c *class, node int) (share, bool) {
	suits := slices.ContainsFunc(c.wish.anyOf, w.nodes[node].satisfies)
	if _, kept := untolerated(w.nodes[node].taints, c.spec.Tolerations, true); kept || !suits {
		return share{}, false
	}
	one := &reach{want: planning.Requirements{}, nodes: packing.NewSet(len(w.problem.Nodes)), some: true}
	one.nodes.Add(node)
	out := share{class: c, reach: one}
	for _, key := range w.keysOf(c) {
		if value, ok := w.nodes[node].domain(key); ok {
			out.domains = append(out.domains, domain{key, value})
		}
	}
	return out, true
}

// askew reports whether a spread constraint does not hold for pods that were
// placed: others, which would have evened it out, found no room.
func (r *rounds) askew() bool {
	for _, c := range r.w.classes {
		for i, g := range c.own.groups {
			if g.kind != spreadKind || !g.hard {
				continue
			}
			least := r.w.minima(c, g.key)[i]
			for _, n := range c.placedIn(g) {
				if n-least > g.skew {
					return true
				}
			}
		}
	}
	return false
}

// placedIn are the counts of the group's domains in which the class has pods.
func (c *class) placedIn(g *group) []int {
	var out []int
	for value, n := range c.placed {
		if n > 0 {
			out = append(out, g.counts[value])
		}
	}
	return out
}
