package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// maxRounds is the maximum number of rounds. Each round but the last drops a preference, excludes a
// full domain or places a pod.
const maxRounds = 1000

// minRetrySteps is the minimum budget for all rounds after the first, in packer steps; the budget is
// larger if the first round took more. Without a budget, pods that limits leave unplaced would be
// retried as long as any small pod still fits.
const minRetrySteps = 20e6

// rounds packs the classes, and retries unplaced pods after their preferences are relaxed.
type rounds struct {
	state  *state
	packer *packing.Packer
	// assignments holds the assignment of each packer pod group, by pod group number.
	assignments []assignment
	// tooFull maps placements that took fewer pods than assigned to the number they took.
	tooFull map[placement]int
	// offerings caches the offerings of a choice of candidates. offeringsKey and chosenPrices are
	// reused buffers.
	offerings    map[string]nodeOfferings
	offeringsKey []byte
	chosenPrices []priceTier
	// placedAny is true if the last round placed a pod.
	placedAny bool
	// devices is the state of Dynamic Resource Allocation; nil if no pod has claims.
	devices *deviceState
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
	var left []*podClass
	for _, c := range r.state.classes {
		if c.problem == "" && len(c.pods) > 0 && !c.hasClaims {
			left = append(left, c)
		}
	}
	waiting := left
	for round, most := 0, 0; len(waiting) > 0 && round < maxRounds && (round == 0 || r.packer.Steps() <= most); round++ {
		r.runRound(waiting)
		if round == 0 {
			most = r.packer.Steps() + max(r.packer.Steps(), minRetrySteps)
		}
		left, waiting = r.listWaiting(left)
	}
}

// listWaiting returns the classes that have pods left and may get a place in a later round, and those of them that the next round tries. A
// class with rules is tried again once a round has placed pods, because its rules may select them.
func (r *rounds) listWaiting(classes []*podClass) (left, waiting []*podClass) {
	for _, c := range classes {
		if len(c.pods) == 0 {
			continue
		}
		retried := r.canRetry(c)
		if retried {
			waiting = append(waiting, c)
		}
		if retried || c.hasRules() {
			left = append(left, c)
		}
	}
	return left, waiting
}

// runRound assigns domains to the waiting pods and packs them. Pods with affinity to other pods get
// their domains after those are packed.
func (r *rounds) runRound(waiting []*podClass) {
	r.placedAny = false
	for _, c := range waiting {
		c.failed, c.neverFirst = false, false
	}
	for range maxRounds {
		r.state.topology.pass++
		shares := r.assignAll(waiting)
		if len(shares) == 0 {
			return
		}
		for _, rank := range r.splitByPriority(shares) {
			r.packAssignments(rank, waiting)
		}
	}
}

// assignAll assigns domains until no waiting class finds one. Classes that must yield are assigned
// when no other class makes progress; if other classes come first (othersFirst), in the round after those are placed or given up.
func (r *rounds) assignAll(waiting []*podClass) []assignment {
	shares := make([]assignment, 0, len(waiting))
	for progress, yielding := true, true; progress; {
		before, yielded := len(shares), false
		shares, yielded = r.assignOnce(waiting, yielding, shares)
		progress = len(shares) > before && len(r.state.topology.groups) > 0
		if !progress && yielded && yielding {
			progress, yielding = true, false
		}
	}
	r.state.currentClass = nil
	return shares
}

// assignOnce tries each waiting class once.
func (r *rounds) assignOnce(waiting []*podClass, yielding bool, shares []assignment) (all []assignment, yielded bool) {
	for _, c := range sortBoundFirst(waiting) {
		r.state.currentClass = c
		switch {
		case len(c.pods) == 0 || c.failed || !r.relaxUntilFeasible(c) || r.state.mustWait(c):
		case (yielding || r.state.othersFirst) && r.state.mustYield(c, waiting):
			yielded, c.neverFirst = true, !yielding
		default:
			shares = r.state.assignDomains(c, shares)
		}
	}
	return shares, yielded
}

// splitByPriority groups the assignments by pod priority, the highest first, if the settings enable
// that; Karpenter ignores priority. Pods of CapacityBuffers always come last.
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

// priority returns the pod's priority, or 0 if the settings ignore priorities and it is not a buffer
// pod.
func (w *state) priority(spec *planning.PodSpec) int32 {
	if w.snapshot.Settings.PlanByPriority || spec.Priority == planning.BufferPriority {
		return spec.Priority
	}
	return 0
}

// stepsPerAssignment is the cost of one assignment, in packer steps.
const stepsPerAssignment = 500

// packAssignments packs the assignments and takes back the pods that were not placed. waiting are all classes of the round.
func (r *rounds) packAssignments(shares []assignment, waiting []*podClass) {
	r.packer.AddSteps(stepsPerAssignment * len(shares))
	podGroups := make([]packing.Group, len(shares))
	for i := range shares {
		c := shares[i].class
		c.neverFirst = c.hasOtherMember(waiting)
		podGroups[i] = r.state.newPodGroup(&shares[i])
		podGroups[i].NeverFirst = c.neverFirst
	}
	first := r.packer.Pack(podGroups)
	r.assignments = append(r.assignments, shares...)
	for i := range shares {
		r.takeBackUnplaced(first + i)
		r.settleCounts(first + i)
	}
}

// relaxUntilFeasible relaxes the class until a node could hold one of its pods. It returns false if
// nothing is left to relax or the class has a problem.
func (r *rounds) relaxUntilFeasible(c *podClass) bool {
	for !c.feasible.nonEmpty || !r.state.fitsAlone(c, c.feasible) {
		if !c.preferences.relaxNext(r.state.softTaints) {
			return false
		}
		r.state.findFeasible(c)
	}
	return c.problem == ""
}

// takeBackUnplaced returns the unplaced pods of a pod group to their class.
func (r *rounds) takeBackUnplaced(podGroup int) {
	s := &r.assignments[podGroup]
	left := r.packer.CountUnplaced(podGroup)
	if left < len(s.pods) {
		r.placedAny = true
	}
	if left == 0 {
		return
	}
	c, kept := s.class, len(s.pods)-left
	c.failed = true
	r.state.countPods(c, s.feasible, s.domains, -left)
	r.state.countOpenDomains(c, s.openDomains, -left)
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
	r.packer.DropGroup(podGroup)
}

// noMoreSets is the blockedBy of a class whose feasible sets are all full.
const noMoreSets = "full"

// canRetry reports whether another round could place more pods of the class: in another domain, after
// a relaxation, or next to pods that the last round placed.
func (r *rounds) canRetry(c *podClass) bool {
	r.state.currentClass = c
	if len(c.fullSets) > 0 && c.blockedBy == "" {
		c.blockedBy = noMoreSets
		return true
	}
	if c.preferences.relaxNext(r.state.softTaints) {
		c.fullSets = nil
		r.state.findFeasible(c)
		return true
	}
	if c.neverFirst {
		return true
	}
	return r.placedAny && c.hasRules()
}

// hasRules reports whether the class has a spread constraint or a rule over other pods.
func (c *podClass) hasRules() bool {
	return len(c.rules.groups)+len(c.rules.hosts) > 0
}

// pinExpectedPods places pods on the NodeClaims that were planned for them. A search would rarely
// find the same place, because a NodeClaim is planned full.
func (r *rounds) pinExpectedPods() {
	if r.state.removal != nil {
		return // The baseline has placed them already.
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
		if r.state.currentClass = c; c.problem == "" && !c.hasClaims {
			shares = append(shares, r.takeExpectedPods(c, expected)...)
		}
	}
	r.state.currentClass = nil
	r.packAssignments(shares, nil)
	for _, c := range r.state.classes {
		c.fullSets, c.blockedBy = nil, ""
	}
}

// takeExpectedPods removes the expected pods from a class and returns their assignments.
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
		r.state.countOpenDomains(c, out[at].openDomains, 1)
	}
	if len(out) > 0 {
		c.pods = rest
	}
	return out
}

// assignToNode returns an assignment of the class to one node; false if the node no longer fits the
// class.
func (w *state) assignToNode(c *podClass, node int) (assignment, bool) {
	suits := slices.ContainsFunc(c.preferences.anyOf, w.nodes[node].satisfiesRequirements)
	if _, kept := findUntolerated(w.nodes[node].taints, c.spec.Tolerations, true); kept || !suits {
		return assignment{}, false
	}
	one := &feasibleSet{requirements: planning.Requirements{}, nodes: packing.NewSet(len(w.problem.Nodes)), nonEmpty: true}
	one.nodes.Add(node)
	out := assignment{class: c, feasible: one}
	for _, key := range w.topologyKeys(c) {
		value, ok := w.nodes[node].domainValue(key)
		switch {
		case !ok && w.nodes[node].openRequirements != nil:
			// The NodeClaim may be launched in each domain that its requirements allow.
			allowed := w.nodes[node].openRequirements.AllowedValues(karpenter.NormalizeLabel(key))
			for _, value := range w.topology.domainValues(w, key) {
				if !allowed.Has(value) {
					continue
				}
				if c.isExcludedFrom(key, value) {
					return assignment{}, false
				}
				out.openDomains = append(out.openDomains, domain{key, value})
			}
		case !ok:
		case c.isExcludedFrom(key, value):
			return assignment{}, false
		default:
			out.domains = append(out.domains, domain{key, value})
		}
	}
	return out, true
}

// breaksSpread reports whether placed pods violate a required spread constraint, because pods that
// would have balanced it were not placed.
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

// countsWherePlaced returns the group's counts in the domains where the class has pods.
func (c *podClass) countsWherePlaced(g *group) []int {
	var out []int
	for value, n := range c.domainPods {
		if n > 0 {
			out = append(out, g.counts[value])
		}
	}
	return out
}
