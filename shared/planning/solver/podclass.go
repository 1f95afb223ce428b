package solver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// podClass is a group of equal pods to place.
type podClass struct {
	spec     *planning.PodSpec
	requests amounts
	// pods are the unplaced pods, the oldest first; they are placed in that order. count is how many
	// pods there were at first.
	pods        []planning.PodRef
	count       int
	preferences preferences
	// initialPreferences are the preferences before any relaxation, for pods that are placed one by
	// one.
	initialPreferences preferences
	// feasible is where the pods may go under the current preferences.
	feasible *feasibleSet
	// set is the label set of the pods, and rules are their rules over other pods under the current
	// preferences.
	set   *labelSet
	rules ownTerms
	// fullSets are the feasible sets, by key, in which no more pods of the class fit.
	fullSets map[string]bool
	// canHold caches whether a feasible set could hold one of the pods.
	canHold map[*feasibleSet]bool
	// maxPerNode caches how many of the pods one node of a feasible set could hold.
	maxPerNode map[*feasibleSet]int
	// assigned counts the assigned pods by key of the feasible set.
	assigned map[string]int
	// failed is true if pods of the class were not placed in this round.
	failed bool
	// neverFirst is true if no pod of the class was allowed to be the first of its affinity in this round, because other pods that the
	// affinity selects wait.
	neverFirst bool
	// domainPods counts the pods by domain.
	domainPods map[string]int
	// problem is why no node can ever hold the pods. blockedBy is the topology key that excluded the
	// last pod.
	problem   string
	blockedBy string
	// rank is the position in the placement order.
	rank          int
	constraintKey string
	// kind has the cached values of the pods' kind; nil outside of removals.
	kind *podKind
	// hasClaims is true if the pods need devices. deviceProblems is, by pool, why the last of them got
	// none on a new node; the key noIndex is for all pools.
	hasClaims      bool
	deviceProblems map[int]string
}

// readClasses reads the pending classes in placement order: by cpu and memory, the largest first,
// then by age and UID.
func (w *state) readClasses(batch *planning.Batch) {
	w.classes = make([]*podClass, len(batch.Pending))
	all := make([]podClass, len(batch.Pending))
	arena := make([]int64, 0, len(all)*len(w.resources.names))
	for i := range batch.Pending {
		c := &all[i]
		w.currentClass, w.classes[i] = c, c
		c.spec, c.pods = &batch.Pending[i].Spec, batch.Pending[i].Pods
		c.count = len(c.pods)
		w.pods += c.count
		c.requests = w.resources.toAmountsIn(&arena, c.spec.Requests)
		w.countVolumes(c)
		c.constraintKey = w.keys.constraintKey(c.spec)
		if c.problem = findInvalidRequest(c.spec); c.problem == "" {
			c.preferences, c.problem = w.readPreferences(c)
		}
	}
	w.rankClasses()
}

// rankClasses sorts the classes into placement order.
func (w *state) rankClasses() {
	w.currentClass = nil
	slices.SortStableFunc(w.classes, func(x, y *podClass) int {
		for r := range 2 {
			if x.requests[r] != y.requests[r] {
				return cmp.Compare(y.requests[r], x.requests[r])
			}
		}
		return comparePods(x.pods, y.pods)
	})
	for i, c := range w.classes {
		c.rank = i
	}
}

func comparePods(x, y []planning.PodRef) int {
	if len(x) == 0 || len(y) == 0 {
		return cmp.Compare(len(x), len(y))
	}
	return cmp.Or(x[0].Created.Compare(y[0].Created), strings.Compare(x[0].UID, y[0].UID))
}

// readPreferences returns the preferences of a class, or why no node can ever hold it. It caches them
// by constraintKey for classes without volumes and without rules over other pods.
func (w *state) readPreferences(c *podClass) (preferences, string) {
	if c.spec.ResourceClaims > 0 && !w.snapshot.Settings.PlanDRARequests {
		return preferences{}, "it has Dynamic Resource Allocation requirements, which Joist does not plan: remove spec.resourceClaims, run the pod on existing nodes, " +
			"or set IGNORE_DRA_REQUESTS=false to plan its devices"
	}
	c.hasClaims = len(c.spec.Claims) > 0
	alone := len(c.spec.Spread) == 0 && len(c.spec.Volumes) == 0 && (c.spec.Affinity == nil || c.spec.Affinity.PodAffinity == nil && c.spec.Affinity.PodAntiAffinity == nil)
	if got, ok := w.preferences[c.constraintKey]; ok && alone {
		return got, ""
	}
	made, problem := newPreferences(c.spec, w.ignoresPreferences || w.snapshot.Settings.PreferencePolicy == "Ignore")
	if w.prefersLast {
		slices.Reverse(made.anyOf)
	}
	if alone && problem == "" {
		w.preferences[c.constraintKey] = made
	}
	return made, problem
}

// findInvalidRequest returns a message if a request is negative.
func findInvalidRequest(spec *planning.PodSpec) string {
	var negative []corev1.ResourceName
	for name, quantity := range spec.Requests {
		if quantity.Sign() < 0 {
			negative = append(negative, name)
		}
	}
	if len(negative) == 0 {
		return ""
	}
	first := slices.Min(negative)
	quantity := spec.Requests[first]
	return fmt.Sprintf("it requests %s of %s: requests must not be negative", quantity.String(), first)
}

// countVolumes counts the pod's volumes against the attach limits of their drivers. It skips a claim
// of a class with several pods: they share it, and it is attached once.
func (w *state) countVolumes(c *podClass) {
	for i := range c.spec.Volumes {
		if c.spec.Volumes[i].Claim != "" && len(c.pods) > 1 {
			continue
		}
		if at, ok := w.resources.index[planning.AttachLimitResource(c.spec.Volumes[i].Driver)]; ok {
			c.requests[at]++
		}
	}
}

// feasibleKey is equal for preferences with equal requirements on nodes.
type feasibleKey struct {
	constraintKey    string
	anyOf, preferred int
	relaxed          bool
}

// findFeasible sets the feasible set and the rules of the class under its current preferences.
func (w *state) findFeasible(c *podClass) {
	at := feasibleKey{c.constraintKey, len(c.preferences.anyOf), len(c.preferences.nodePreferences), c.preferences.toleratesSoftTaints}
	if c.feasible = w.feasibleByKey[at]; c.feasible == nil {
		c.feasible = w.findFeasibleSet(fmt.Sprint(at), c.preferences.nodeRequirements(), c.spec.Tolerations, c.preferences.toleratesSoftTaints)
		w.feasibleByKey[at] = c.feasible
	}
	c.feasible = w.excludeDaemons(c)
	w.bindRules(c)
}

// listRepelledDaemons returns the indexes of the daemons that the class cannot share a node with: they use one of its host ports, or one
// of them has a required anti-affinity to the other over host names.
func (w *state) listRepelledDaemons(c *podClass) (out []int) {
	repelled := w.repelledOnHost(c.spec)
	for i := range w.daemons {
		d := &w.daemons[i]
		if planning.PortsConflict(d.spec.HostPorts, c.spec.HostPorts) || selectSet(repelled, d.set) || selectSet(d.repelled, c.set) {
			out = append(out, i)
		}
	}
	return out
}

// excludeDaemons drops candidates whose nodes run a daemon that the class cannot share a node with.
func (w *state) excludeDaemons(c *podClass) *feasibleSet {
	excluded := w.listRepelledDaemons(c)
	if len(excluded) == 0 {
		return c.feasible
	}
	key := fmt.Sprint(c.feasible.key, "\x00without daemons", excluded)
	if r, ok := w.feasibleSets[key]; ok {
		return r
	}
	out := *c.feasible
	out.key, out.narrowedSets, out.lastHolder, out.whole = key, nil, nil, nil
	for _, i := range excluded {
		if d := &w.daemons[i]; out.zoneCapacityTypes&^d.zoneCapacityTypes == 0 {
			out.candidates = w.internSet(out.candidates.Without(d.candidates))
		} else { // It does not run in all zones.
			out.zoneCapacityTypes &^= d.zoneCapacityTypes
		}
	}
	out.nonEmpty = w.isBuyable(&out) || out.nodes.Len() > 0
	w.feasibleSets[key] = &out
	return &out
}

// repelledOnHost returns the selections of a pod's required anti-affinity over host names.
func (w *state) repelledOnHost(spec *planning.PodSpec) []selection {
	var out []selection
	terms := requiredAntiAffinity(spec.Affinity)
	for i := range terms {
		if karpenter.NormalizeLabel(terms[i].TopologyKey) != corev1.LabelHostname {
			continue
		}
		if chosen, err := w.termSelection(&terms[i], spec); err == nil { // Kubernetes ignores a term that it cannot read.
			out = append(out, chosen)
		}
	}
	return out
}

// selectSet reports whether one of the selections selects pods with the labels.
func selectSet(selections []selection, set *labelSet) bool {
	return slices.ContainsFunc(selections, func(s selection) bool { return s.matchesSet(set) })
}

// fitsAlone reports whether a pod of the class fits on an empty new node. It returns true without a
// check if the set has existing nodes.
func (w *state) fitsAlone(c *podClass, r *feasibleSet) bool {
	if r.nodes.Len() > 0 || r.lastHolder != nil && c.requests.fitsIn(r.lastHolder.Allocatable) {
		return true
	}
	return w.anyCandidate(r, func(candidate *packing.CandidateType) bool {
		if !c.requests.fitsIn(candidate.Allocatable) {
			return false
		}
		r.lastHolder = candidate
		return true
	})
}
