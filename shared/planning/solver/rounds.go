package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// maxRounds bounds how often what found no place is tried again. Each round but
// the last relaxes something, closes a domain or places a pod.
const maxRounds = 1000

// minRetrySteps is what may be spent on all rounds but the first, in the packer's
// steps, if that is more than the first took. Pods that limits leave out could be
// tried again for as long as some small one still finds a place.
const minRetrySteps = 20e6

// rounds packs the classes, and what found no place again after its wishes were
// relaxed.
type rounds struct {
	state  *state
	packer *packing.Packer
	// assignments are the packer's lots, by number.
	assignments []assignment
	// tooFull are places that took fewer pods than they were given, and how many.
	tooFull map[placement]int
	// offerings are what was sold already, by what was chosen from; saleKey and chosen are
	// memory for making them.
	offerings    map[string]nodeOfferings
	offeringsKey []byte
	chosenPrices []priceTier
	// placedAny is whether the last round placed any pod.
	placedAny bool
}

func newRounds(w *state) *rounds {
	r := &rounds{state: w, packer: packing.New(w.problem), tooFull: map[placement]int{}}
	if w.removal != nil {
		r.offerings = w.removal.cachedOfferings()
	} else {
		r.offerings = map[string]nodeOfferings{}
	}
	return r
}

func (r *rounds) runRounds() {
	r.pinExpectedPods()
	var waiting []*podClass
	for _, c := range r.state.classes {
		if c.problem == "" && len(c.pods) > 0 {
			waiting = append(waiting, c)
		}
	}
	for round, most := 0, 0; len(waiting) > 0 && round < maxRounds && (round == 0 || r.packer.Steps() <= most); round++ {
		r.runRound(waiting)
		if round == 0 {
			most = r.packer.Steps() + max(r.packer.Steps(), minRetrySteps)
		}
		waiting = slices.DeleteFunc(waiting, func(c *podClass) bool { return len(c.pods) == 0 || !r.canRetry(c) })
	}
	r.packer.Finish()
}

// runRound gives the waiting pods their domains and packs them. Pods that must stand
// beside others get theirs when those are packed.
func (r *rounds) runRound(waiting []*podClass) {
	r.placedAny = false
	for _, c := range waiting {
		c.failed = false
	}
	for range maxRounds {
		r.state.topology.pass++
		shares := r.assignAll(waiting)
		if len(shares) == 0 {
			return
		}
		for _, rank := range r.splitByPriority(shares) {
			r.packAssignments(rank)
		}
	}
}

// assignAll goes through the waiting classes until none of them finds a domain. Classes
// that yield to others come when nothing else finds one.
func (r *rounds) assignAll(waiting []*podClass) []assignment {
	shares := make([]assignment, 0, len(waiting))
	for progress, yielding := true, true; progress; {
		before, yielded := len(shares), false
		shares, yielded = r.assignOnce(waiting, yielding, shares)
		progress = len(shares) > before && len(r.state.topology.groups) > 0
		if !progress && yielded {
			progress, yielding = true, false
		}
	}
	r.state.currentClass = nil
	return shares
}

// assignOnce goes through the waiting classes once.
func (r *rounds) assignOnce(waiting []*podClass, yielding bool, shares []assignment) (all []assignment, yielded bool) {
	for _, c := range sortBoundFirst(waiting) {
		r.state.currentClass = c
		switch {
		case len(c.pods) == 0 || c.failed || !r.relaxUntilFeasible(c) || r.state.mustWait(c):
		case yielding && r.state.mustYield(c, waiting):
			yielded = true
		default:
			shares = r.state.assignDomains(c, shares)
		}
	}
	return shares, yielded
}

// splitByPriority splits shares by the priority of their pods, the highest first, if that
// is to count; Karpenter does not look at it. Pods of buffers do not
// exist, and come after all that do.
func (r *rounds) splitByPriority(shares []assignment) [][]assignment {
	rank := func(s assignment) int32 { return r.state.priority(s.class.spec) }
	var out [][]assignment
	slices.SortStableFunc(shares, func(a, b assignment) int {
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
func (w *state) priority(spec *planning.PodSpec) int32 {
	if w.snapshot.Settings.PlanByPriority || spec.Priority == planning.BufferPriority {
		return spec.Priority
	}
	return 0
}

// stepsPerAssignment is what finding the domains of a share takes, in the packer's steps.
const stepsPerAssignment = 500

// packAssignments hands shares to the packer, and takes back what found no place.
func (r *rounds) packAssignments(shares []assignment) {
	r.packer.Spend(stepsPerAssignment * len(shares))
	lots := make([]packing.Lot, len(shares))
	for i := range shares {
		lots[i] = r.state.newLot(&shares[i])
	}
	first := r.packer.Pack(lots)
	r.assignments = append(r.assignments, shares...)
	for i := range shares {
		r.takeBackUnplaced(first + i)
	}
}

// relaxUntilFeasible relaxes the class until something could hold it, or nothing is left to
// relax: there is no need to pack in order to see that.
func (r *rounds) relaxUntilFeasible(c *podClass) bool {
	for !c.feasible.nonEmpty || !r.state.fitsAlone(c, c.feasible) {
		if !c.preferences.relaxNext(r.state.softTaints) {
			return false
		}
		r.state.findFeasible(c)
	}
	return c.problem == ""
}

// takeBackUnplaced takes back the pods of a lot that found no place.
func (r *rounds) takeBackUnplaced(lot int) {
	s := &r.assignments[lot]
	left := r.packer.Left(lot)
	if left < len(s.pods) {
		r.placedAny = true
	}
	if left == 0 {
		return
	}
	c, kept := s.class, len(s.pods)-left
	c.failed = true
	r.state.countPods(c, s.feasible, s.domains, -left)
	c.pods = append(slices.Clone(s.pods[kept:]), c.pods...)
	s.pods = s.pods[:kept]
	if len(r.state.topologyKeys(c)) > 0 {
		c.countAssigned(s.feasible.key, -left)
		r.tooFull[placement{c.spec, s.feasible.key}] = c.assigned[s.feasible.key]
		if c.fullSets == nil {
			c.fullSets = map[string]bool{}
		}
		c.fullSets[s.feasible.key] = true
		c.blockedBy = ""
	}
	r.packer.Drop(lot)
}

// canRetry reports whether another round could place more of the class: in another
// domain, after a relaxation, or beside pods that were placed meanwhile.
func (r *rounds) canRetry(c *podClass) bool {
	r.state.currentClass = c
	if c.problem != "" {
		return false
	}
	if len(c.fullSets) > 0 && c.blockedBy == "" {
		c.blockedBy = "closed"
		return true
	}
	if c.preferences.relaxNext(r.state.softTaints) {
		c.fullSets = nil
		r.state.findFeasible(c)
		return c.problem == ""
	}
	return r.placedAny && len(c.rules.groups)+len(c.rules.hosts) > 0
}

// pinExpectedPods puts pods on the claims that were made for them. To find such a place again
// by trying would be luck: a claim is planned to be full.
func (r *rounds) pinExpectedPods() {
	if r.state.removal != nil {
		return // What claims are for has been put there before.
	}
	expected := map[string]int{}
	for i := range r.state.problem.Nodes {
		for _, uid := range r.state.nodes[i].node.ExpectedPods {
			expected[uid] = i
		}
	}
	if len(expected) == 0 {
		return
	}
	var shares []assignment
	for _, c := range r.state.classes {
		if r.state.currentClass = c; c.problem == "" {
			shares = append(shares, r.takeExpectedPods(c, expected)...)
		}
	}
	r.state.currentClass = nil
	r.packAssignments(shares)
	for _, c := range r.state.classes {
		c.fullSets, c.blockedBy = nil, ""
	}
}

// takeExpectedPods takes the expected pods out of a class.
func (r *rounds) takeExpectedPods(c *podClass, expected map[string]int) (out []assignment) {
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
			one, ok := r.state.assignToNode(c, node)
			if !ok {
				rest = append(rest, pod)
				continue
			}
			at, byNode[node] = len(out), len(out)
			out = append(out, one)
		}
		out[at].pods = append(out[at].pods, pod)
		r.state.countPods(c, out[at].feasible, out[at].domains, 1)
	}
	if len(out) > 0 {
		c.pods = rest
	}
	return out
}

// assignToNode is the share of a class that goes to one node; false when that node is not
// for the class any more.
func (w *state) assignToNode(c *podClass, node int) (assignment, bool) {
	suits := slices.ContainsFunc(c.preferences.anyOf, w.nodes[node].satisfiesRequirements)
	if _, kept := findUntolerated(w.nodes[node].taints, c.spec.Tolerations, true); kept || !suits {
		return assignment{}, false
	}
	one := &feasibleSet{requirements: planning.Requirements{}, nodes: packing.NewSet(len(w.problem.Nodes)), nonEmpty: true}
	one.nodes.Add(node)
	out := assignment{class: c, feasible: one}
	for _, key := range w.topologyKeys(c) {
		if value, ok := w.nodes[node].domainValue(key); ok {
			out.domains = append(out.domains, domain{key, value})
		}
	}
	return out, true
}

// breaksSpread reports whether a spread constraint does not hold for pods that were
// placed: others, which would have evened it out, found no room.
func (r *rounds) breaksSpread() bool {
	for _, c := range r.state.classes {
		for i, g := range c.rules.groups {
			if g.kind != spreadKind || !g.hard {
				continue
			}
			least := r.state.minDomainCounts(c, g.key)[i]
			for _, n := range c.countsWherePlaced(g) {
				if n-least > g.skew {
					return true
				}
			}
		}
	}
	return false
}

// countsWherePlaced are the counts of the group's domains in which the class has pods.
func (c *podClass) countsWherePlaced(g *group) []int {
	var out []int
	for value, n := range c.domainPods {
		if n > 0 {
			out = append(out, g.counts[value])
		}
	}
	return out
}
