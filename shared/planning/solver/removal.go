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
	baseline *baseline
	state    *state
	// requested are the nodes by their places in the snapshot, and nodes those of the
	// world.
	requested, nodes []int
	// removedNodes are these nodes and all that were taken before.
	removedNodes packing.Set
	// closedNodes are nodes that stay and take none of the pods.
	closedNodes packing.Set
	moved       []kindPods
}

// newRemoval asks for nodes by their places in the snapshot. Those that are gone or
// going have no pods to be moved.
func (st *baseline) newRemoval(nodes []int) *removal {
	r := &removal{baseline: st, state: st.state, requested: nodes, removedNodes: slices.Clone(st.removedNodes)}
	for _, j := range nodes {
		if i := st.nodeIndexes[j]; i >= 0 && !r.removedNodes.Has(i) {
			r.removedNodes.Add(i)
			r.nodes = append(r.nodes, i)
		}
	}
	r.listMoved()
	return r
}

// listMoved lists the pods by kind, the oldest first.
func (r *removal) listMoved() {
	known := map[*podKind]int{}
	for _, i := range r.nodes {
		name := r.state.nodes[i].node.Name
		for _, one := range r.baseline.movable[i] {
			at, ok := known[one.kind]
			if !ok {
				at, known[one.kind] = len(r.moved), len(r.moved)
				r.moved = append(r.moved, kindPods{kind: one.kind, pods: make([]planning.PodRef, 0, len(one.pods))})
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

// planOnce plans once. A panic is a fault of ours.
func (r *removal) planOnce(e effort) (result planning.Result, fault *planningFailure) {
	var w *state
	defer func() {
		if cause := recover(); cause != nil {
			fault = newFailure(w, cause)
		}
	}()
	best := planWithEffort(r, e, retryBudget, &w)
	result = addStaticNodes(best.Result, r.planStaticNodes(w, best.Nodes))
	result.BoundPerHour = 0 // It was not worked out.
	return result, nil
}

// planStaticNodes are the nodes that static pools lack without the removed ones.
func (r *removal) planStaticNodes(w *state, beside []planning.PlannedNode) []planning.PlannedNode {
	if !w.snapshot.Settings.Gates.StaticCapacity {
		return nil
	}
	gone := make(map[int]bool, len(r.requested))
	for _, j := range r.requested {
		gone[j] = true
	}
	return w.planStaticNodes(r.baseline.types, planning.FindShortfallsWithout(w.snapshot, func(j int) bool { return gone[j] || w.snapshot.Nodes[j].MarkedForDeletion }), beside)
}

func (r *removal) newState() *state {
	st, w := r.baseline, *r.state
	w.removal = r
	w.feasibleSets, w.feasibleByKey, w.topology = map[string]*feasibleSet{}, map[feasibleKey]*feasibleSet{}, topology{}
	w.requiredSets, w.classes, w.pods, w.currentClass = nil, nil, 0, nil
	w.problem.Nodes, w.problem.Pools = st.resetTallies(), r.state.releaseLimits(r.nodes)
	return &w
}

// resetTallies are the nodes without what the rules of earlier questions made of them.
func (st *baseline) resetTallies() []packing.Node {
	for _, i := range st.talliedNodes {
		st.nodes[i].Tallies = st.nodes[i].Tallies[:0]
	}
	st.talliedNodes = st.talliedNodes[:0]
	if all := st.state.problem.Nodes; len(st.nodes) != len(all) {
		st.nodes = slices.Clone(all) // Rooms are shared: they shrink in place.
	}
	return st.nodes
}

func (r *removal) readClasses(w *state) {
	w.classes = make([]*podClass, len(r.moved))
	all := make([]podClass, len(r.moved))
	for i := range r.moved {
		c, k := &all[i], r.moved[i].kind
		c.kind, c.spec, c.pods, c.count = k, k.spec, r.moved[i].pods, len(r.moved[i].pods)
		w.currentClass, w.classes[i] = c, c
		w.pods += c.count
		r.readKind(w, c)
		c.requests, c.constraintKey, c.preferences, c.problem = k.requests, k.constraintKey, k.preferences, k.problem
		if len(c.spec.Volumes) > 0 {
			c.requests = slices.Clone(c.requests)
			w.countVolumes(c)
		}
	}
	w.rankClasses()
}

// readKind works out what is known of a kind, from the first class of it.
func (r *removal) readKind(w *state, c *podClass) {
	k := c.kind
	if k.requestCount++; k.isRead {
		return
	}
	k.requests, k.constraintKey = w.resources.toAmounts(k.spec.Requests), w.keys.constraintKey(k.spec)
	c.constraintKey = k.constraintKey
	if k.problem = findInvalidRequest(k.spec); k.problem == "" {
		k.preferences, k.problem = w.readPreferences(c)
	}
	k.isRead = true
}

// openNodes are the nodes that may take a pod.
func (w *state) openNodes(nodes packing.Set) packing.Set {
	if w.removal == nil || len(w.removal.closedNodes) == 0 || !nodes.Overlaps(w.removal.closedNodes) {
		return nodes
	}
	return nodes.Without(w.removal.closedNodes)
}

// isRemoved reports whether a node is to be gone.
func (w *state) isRemoved(i int) bool { return w.removal != nil && w.removal.removedNodes.Has(i) }

// withoutRemoved is what remains of a reach without the nodes that are gone.
func (r *removal) withoutRemoved(w *state, of *feasibleSet) *feasibleSet {
	out := *of
	out.whole, out.narrowedSets = of, nil
	if of.nodes.Overlaps(r.removedNodes) {
		out.nodes = of.nodes.Without(r.removedNodes)
		out.nonEmpty = out.nodes.Len() > 0 || w.isBuyable(&out)
	}
	return &out
}

// filterNodesWithRoom leaves out nodes that have no room for a pod of the class. That takes a look
// at each of them, and pays off for kinds that are asked for often.
func (r *removal) filterNodesWithRoom(c *podClass, nodes packing.Set) packing.Set {
	k := c.kind
	if k.requestCount < 2 || len(nodes) == 0 {
		return nodes
	}
	if k.nodesWithRoom == nil {
		k.nodesWithRoom = packing.NewSet(len(r.state.problem.Nodes))
		for i := range r.state.problem.Nodes {
			if k.requests.fitsIn(r.state.problem.Nodes[i].Room) {
				k.nodesWithRoom.Add(i)
			}
		}
	}
	return nodes.And(k.nodesWithRoom)
}

// maxCachedOfferings bounds how many sales are remembered from one question to the next.
const maxCachedOfferings = 256

// cachedOfferings are those that were made before, which are good for any question.
func (r *removal) cachedOfferings() map[string]nodeOfferings {
	if len(r.baseline.offerings) > maxCachedOfferings {
		r.baseline.offerings = map[string]nodeOfferings{}
	}
	return r.baseline.offerings
}

// domainValues are what a label may be without the nodes that are gone.
func (r *removal) domainValues(key string) []string {
	known, lost := r.baseline.domainValues(key), map[string]int{}
	less := false
	for _, i := range r.nodes {
		if value, ok := r.state.nodes[i].domainValue(key); ok {
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

// countGroup counts the pods that run and stay in a new group of some term.
func (r *removal) countGroup(g *group, id string, t topologyTerm, c *podClass) {
	where := r.state.findRegion(t.spread, c)
	maps.Copy(g.counts, r.baseline.countDomains(id, g.key, t.selection, where))
	chosen := r.baseline.selectPods(t.selection)
	for _, i := range r.nodes {
		domain, ok := r.state.nodes[i].domainValue(g.key)
		if !ok || where != nil && !where.nodes.Has(i) {
			continue
		}
		for _, one := range r.baseline.residents[i] {
			if chosen.has[one.kind.set] {
				g.counts[domain] -= one.count
			}
		}
		if g.counts[domain] == 0 {
			delete(g.counts, domain)
		}
	}
}

// countHostRule counts the pods that run and stay in a rule over host names.
func (r *removal) countHostRule(w *state, rule int32, s selection) {
	for _, b := range r.baseline.selectPods(s).bound {
		if !r.removedNodes.Has(b.node) {
			w.findTally(b.node, rule).Members += int32(b.count)
		}
	}
}

// addAntiAffinity reads the required anti-affinity of pods that run and stay, as far as it
// selects a pod that is moved.
func (r *removal) addAntiAffinity(w *state) {
	seen := map[*antiAffinityRule]bool{}
	for _, one := range r.moved {
		for _, rule := range r.baseline.owners.rulesFor(one.kind.set) {
			if !seen[rule] {
				seen[rule] = true
				r.addAntiAffinityRule(w, rule)
			}
		}
	}
}

func (r *removal) addAntiAffinityRule(w *state, rule *antiAffinityRule) {
	at := slices.DeleteFunc(slices.Clone(rule.at), func(o rulePods) bool { return r.removedNodes.Has(o.node) })
	if len(at) == 0 {
		return // Nobody is left who has it.
	}
	one := topologyTerm{kind: antiAffinityKind, key: rule.key, selection: rule.selection, hard: true}
	if !isHostname(rule.key) {
		g := w.findGroup(one, nil)
		g.hard = true
		for _, o := range at {
			if domain, ok := w.nodes[o.node].domainValue(g.key); ok {
				g.owners[domain] += o.count
			}
		}
		return
	}
	h := w.findHostRule(one)
	for _, o := range at {
		if tally := w.findTally(o.node, h.id); o.inside {
			tally.Inside += int32(o.count)
		} else {
			tally.Outside += int32(o.count)
		}
	}
}

// visitPortNodes visits the nodes that may have given away a host port. To those that are
// gone nobody goes anyway.
func (r *removal) visitPortNodes(port int32, visit func(i int)) {
	for _, i := range r.baseline.ports[port] {
		visit(i)
	}
}
