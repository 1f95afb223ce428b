package solver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// removal is the task that plans the pods of removed nodes. Its state has all nodes but these.
type removal struct {
	baseline *baseline
	state    *state
	// requested are the removed nodes by snapshot index, and nodes the same by state index.
	requested, nodes []int
	// removedNodes are these nodes and all nodes that commits removed.
	removedNodes packing.Set
	// closedNodes are nodes that stay but take none of the pods.
	closedNodes packing.Set
	moved       []kindPods
}

// newRemoval returns the removal of nodes, by snapshot index. Nodes that are already removed or being
// deleted have no pods to move.
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

// listMoved lists the pods to move by kind, the oldest first.
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

// planOnce plans once. It recovers from a panic and returns it as a failure.
func (r *removal) planOnce(e effort) (result planning.Result, fault *planningFailure) {
	var w *state
	defer recoverFailure(&w, &fault)
	var best attemptResult
	if len(r.moved) > 0 {
		best = planWithEffort(r, e, retryBudget, &w)
	} else {
		w = r.newState()
	}
	result = addStaticNodes(best.Result, r.planStaticNodes(w, best.Nodes))
	result.BoundPerHour = 0 // Removals do not compute it.
	return result, nil
}

// planStaticNodes returns the nodes that static NodePools lack after the removal.
func (r *removal) planStaticNodes(w *state, planned []planning.PlannedNode) []planning.PlannedNode {
	if !w.snapshot.Settings.Gates.StaticCapacity {
		return nil
	}
	gone := make(map[int]bool, len(r.requested))
	for _, j := range r.requested {
		gone[j] = true
	}
	return w.planStaticNodes(r.baseline.types, planning.FindShortfallsWithout(w.snapshot, func(j int) bool { return gone[j] || w.snapshot.Nodes[j].MarkedForDeletion }), planned)
}

func (r *removal) newState() *state {
	st, w := r.baseline, *r.state
	w.removal = r
	w.feasibleSets, w.feasibleByKey, w.topology = map[string]*feasibleSet{}, map[feasibleKey]*feasibleSet{}, topology{}
	w.problem.Nodes, w.problem.Pools = st.resetTallies(), r.state.releaseLimits(r.nodes)
	return &w
}

// resetTallies returns the nodes without the tallies of earlier simulations.
func (st *baseline) resetTallies() []packing.Node {
	for _, i := range st.talliedNodes {
		st.nodes[i].RuleCounts = st.nodes[i].RuleCounts[:0]
	}
	st.talliedNodes = st.talliedNodes[:0]
	if all := st.state.problem.Nodes; len(st.nodes) != len(all) {
		st.nodes = slices.Clone(all) // Room is shared, because commits change it in place.
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
		c.hasClaims = len(c.spec.Claims) > 0
		if len(c.spec.Volumes) > 0 {
			c.requests = slices.Clone(c.requests)
			w.countVolumes(c)
		}
	}
	w.rankClasses()
}

// readKind computes the shared values of a kind on first use.
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

// openNodes returns the nodes that may take a pod.
func (w *state) openNodes(nodes packing.Set) packing.Set {
	if w.removal == nil || len(w.removal.closedNodes) == 0 || !nodes.Overlaps(w.removal.closedNodes) {
		return nodes
	}
	return nodes.Without(w.removal.closedNodes)
}

// isRemoved reports whether the node is removed.
func (w *state) isRemoved(i int) bool { return w.removal != nil && w.removal.removedNodes.Has(i) }

// withoutRemoved returns the feasible set without the removed nodes.
func (r *removal) withoutRemoved(w *state, of *feasibleSet) *feasibleSet {
	out := *of
	out.whole, out.narrowedSets = of, nil
	if of.nodes.Overlaps(r.removedNodes) {
		out.nodes = of.nodes.Without(r.removedNodes)
		out.nonEmpty = out.nodes.Len() > 0 || w.isBuyable(&out)
	}
	return &out
}

// filterNodesWithRoom drops nodes that are too full for a pod of the class. It checks every node, so
// it only does so from the second request for a kind on.
func (r *removal) filterNodesWithRoom(c *podClass, nodes packing.Set) packing.Set {
	k := c.kind
	if k.requestCount < 2 || len(nodes) == 0 {
		return nodes
	}
	if k.nodesWithRoom == nil {
		k.nodesWithRoom = packing.NewSet(len(r.state.problem.Nodes))
		for i := range r.state.problem.Nodes {
			if k.requests.fitsIn(r.state.problem.Nodes[i].Free) {
				k.nodesWithRoom.Add(i)
			}
		}
	}
	return nodes.Intersect(k.nodesWithRoom)
}

// maxCachedOfferings is the size at which the offerings cache is emptied.
const maxCachedOfferings = 256

// cachedOfferings returns the offerings cache that all simulations share.
func (r *removal) cachedOfferings() map[string]nodeOfferings {
	if len(r.baseline.offerings) > maxCachedOfferings {
		r.baseline.offerings = map[string]nodeOfferings{}
	}
	return r.baseline.offerings
}

// domainValues returns the possible values of a label without the removed nodes.
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

// countGroup counts the running pods of a new group, without those on removed nodes.
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

// countHostRule counts the running pods of a host rule, without those on removed nodes.
func (r *removal) countHostRule(w *state, rule int32, s selection) {
	for _, b := range r.baseline.selectPods(s).bound {
		if !r.removedNodes.Has(b.node) {
			w.findRuleCount(b.node, rule).Members += int32(b.count)
		}
	}
}

// addAntiAffinity adds the required anti-affinity of running pods that stay, if it selects a moved
// pod.
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
		return // No pod with the rule stays.
	}
	one := topologyTerm{kind: antiAffinityKind, key: rule.key, selection: rule.selection, hard: true}
	if !isHostname(rule.key) {
		g := w.findGroup(one, nil)
		for _, o := range at {
			if domain, ok := w.nodes[o.node].domainValue(g.key); ok {
				g.owners[domain] += o.count
			}
		}
		return
	}
	h := w.findHostRule(one)
	for _, o := range at {
		if counts := w.findRuleCount(o.node, h.id); o.inside {
			counts.OwnersInside += int32(o.count)
		} else {
			counts.OwnersOutside += int32(o.count)
		}
	}
}

// visitPortNodes visits the nodes on which the host port may be in use. It does not skip removed
// nodes, because no pod is placed there anyway.
func (r *removal) visitPortNodes(port int32, visit func(i int)) {
	for _, i := range r.baseline.ports[port] {
		visit(i)
	}
}
