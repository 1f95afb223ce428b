package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// committedPods are the pods that committed results placed or left unplaced.
type committedPods struct {
	// onto maps node indexes to the pods placed on them.
	onto  map[int][]kindPods
	nodes []committedNode
	// left are the unplaced pods.
	left []planning.PodClass
}

// committedNode is a planned node of a committed result, with its pods.
type committedNode struct {
	name    string
	planned planning.PlannedNode
	runs    []kindPods
	// allocations are those of the claims of its pods.
	allocations []planning.ClaimAllocation
}

// commitResult applies the result of a removal to the baseline. Pods are matched by UID.
func (st *baseline) commitResult(result *planning.Result, nodes []int, waiting []planning.PodClass) {
	moving, removed := map[string]*podKind{}, make([]string, 0, len(nodes))
	for i := range waiting {
		for _, pod := range waiting[i].Pods {
			moving[pod.UID] = st.kinds.findKind(&waiting[i].Spec)
		}
	}
	for _, j := range nodes {
		removed = append(removed, st.state.snapshot.Nodes[j].Name)
		st.state.snapshot.Nodes[j].MarkedForDeletion = true
		if i := st.nodeIndexes[j]; i >= 0 && !st.removedNodes.Has(i) {
			for _, one := range st.movable[i] {
				for _, pod := range one.pods {
					moving[pod.UID] = one.kind
				}
			}
			st.removeNode(i)
		}
	}
	for _, one := range st.groupNominations(result.Nominations, moving) {
		st.placePods(one.node, one.kindPods)
	}
	for i := range result.Nodes {
		st.addPlannedNode(&result.Nodes[i], removed, moving)
		st.keepAllocations(result, i)
	}
	st.keepUnplaced(result.Unplaced, moving)
	st.commitDevices(result)
	st.cache, st.owners.bySet = ruleCache{}, map[*labelSet][]*antiAffinityRule{}
	st.owners.indexRules()
}

// removeNode removes a node and its pods from all counts.
func (st *baseline) removeNode(i int) {
	st.removedNodes.Add(i)
	st.state.problem.Pools = st.state.releaseLimits([]int{i})
	for _, one := range st.residents[i] {
		set := one.kind.set
		set.bound = slices.DeleteFunc(set.bound, func(b boundPods) bool { return b.node == i })
	}
	st.residents[i], st.movable[i] = nil, nil
	delete(st.committed.onto, i)
}

// podPlacement is a number of pods of one kind that are placed on one node.
type podPlacement struct {
	node int
	kindPods
}

// groupNominations groups nominations by node and kind.
func (st *baseline) groupNominations(nominations []planning.Nomination, moving map[string]*podKind) (out []podPlacement) {
	type place struct {
		node int
		kind *podKind
	}
	byName, known := st.indexNames(), map[place]int{}
	for _, n := range nominations {
		i, ok := byName[n.Node]
		if !ok {
			i, ok = byName[n.Claim]
		}
		kind := moving[n.Pod.UID]
		if !ok || kind == nil {
			continue // The nomination is not from this simulation.
		}
		to := place{i, kind}
		at, started := known[to]
		if !started {
			at, known[to] = len(out), len(out)
			out = append(out, podPlacement{i, kindPods{kind: kind}})
		}
		n.Pod.Node, n.Pod.Terminating = "", false // The replacement pod is new.
		out[at].pods = append(out[at].pods, n.Pod)
	}
	return out
}

// indexNames returns the node indexes by name of the node and of its NodeClaim.
func (st *baseline) indexNames() map[string]int {
	if st.byName == nil {
		st.byName = make(map[string]int, 2*len(st.residents))
		for i := range st.residents {
			node := st.state.nodes[i].node
			if node.Claim != "" {
				st.byName[node.Claim] = i
			}
			st.byName[node.Name] = i
		}
	}
	return st.byName
}

// placePods places pods on an existing node or NodeClaim.
func (st *baseline) placePods(i int, one kindPods) {
	w, node := st.state, st.state.nodes[i].node
	amounts(w.problem.Nodes[i].Free).subtract(w.resources.toAmounts(one.sumRequests()))
	st.countResidents(i, one.kind, len(one.pods))
	st.countAntiAffinity(i, one.kind, len(one.pods))
	node.HostPorts = append(slices.Clip(node.HostPorts), one.kind.spec.HostPorts...)
	st.addHostPorts(i, one.kind.spec.HostPorts)
	st.movable[i] = append(slices.Clip(st.movable[i]), one)
	if st.committed.onto == nil {
		st.committed.onto = map[int][]kindPods{}
	}
	st.committed.onto[i] = append(st.committed.onto[i], one)
}

// addPlannedNode adds a planned node: it counts its pods in the rules, and its largest possible type
// in the limits. The node has no free capacity because it is not initialized.
func (st *baseline) addPlannedNode(planned *planning.PlannedNode, removed []string, moving map[string]*podKind) {
	w, made := st.state, committedNode{planned: *planned}
	at := map[*podKind]int{}
	for _, placed := range planned.Pods {
		kind := moving[placed.Pod.UID]
		if kind == nil {
			continue
		}
		i, ok := at[kind]
		if !ok {
			i, at[kind] = len(made.runs), len(made.runs)
			made.runs = append(made.runs, kindPods{kind: kind})
		}
		placed.Pod.Node, placed.Pod.Terminating = "", false
		made.runs[i].pods = append(made.runs[i].pods, placed.Pod)
	}
	made.name = st.newNodeName(planned, removed)
	st.committed.nodes = append(st.committed.nodes, made)
	node := &planning.Node{Name: made.name, Claim: made.name, NodePool: planned.NodePool, Labels: planned.Requirements.Labels(), PricePerHour: planning.HighestPrice(planned.Offerings)}
	w.snapshot.Nodes = append(w.snapshot.Nodes, *node)
	i, room := len(w.problem.Nodes), make([]int64, len(w.resources.names))
	for r := range room {
		room[r] = -1
	}
	open := planned.Requirements.Intersect(planning.RegistrationLabels)
	w.nodes = slices.Insert(w.nodes, i, &existingNode{node: node, openRequirements: open})
	w.problem.Nodes = append(w.problem.Nodes, packing.Node{Free: room})
	st.removedNodes = append(st.removedNodes, packing.NewSet(i + 1)[len(st.removedNodes):]...)
	st.movable, st.residents = append(st.movable, nil), append(st.residents, nil)
	for _, one := range made.runs {
		st.countResidents(i, one.kind, len(one.pods))
		st.countAntiAffinity(i, one.kind, len(one.pods))
	}
	st.countPlannedNode(planned)
	for _, r := range w.feasibleSets {
		w.addNodeTo(r, i)
	}
	w.feasibleByKey = map[feasibleKey]*feasibleSet{}
	st.indexNames()[made.name] = i
}

// addNodeTo adds the node that was added last to a feasible set and its subsets, if it belongs there.
func (w *state) addNodeTo(r *feasibleSet, i int) {
	if i/64 >= len(r.nodes) {
		r.nodes = append(r.nodes, 0)
	}
	if w.isFeasibleNode(r, i) {
		r.nodes.Add(i)
		r.nonEmpty = true
	}
	for _, byValue := range r.narrowedSets {
		for _, part := range byValue {
			w.addNodeTo(part, i)
		}
	}
}

// countPlannedNode subtracts a planned node from limits, IP quotas and reservations.
func (st *baseline) countPlannedNode(planned *planning.PlannedNode) {
	w, largest := st.state, make(amounts, len(st.state.resources.names))
	at := slices.IndexFunc(w.pools, func(p *pool) bool { return p.name == planned.NodePool })
	if w.priceLimits != nil {
		largest[w.priceLimits.priceIndex], _ = planning.PriceToMicrodollars(planning.HighestPrice(planned.Offerings))
	}
	if at < 0 { // A static pool has its own node count.
		if w.priceLimits != nil && w.priceLimits.clusterLimit != nil {
			w.priceLimits.clusterLimit.SubtractNode(largest)
		}
		return
	}
	pool := &w.problem.Pools[w.pools[at].index]
	types := st.plannedTypes(planned)
	zoneQuotas := map[int]bool{}
	for _, o := range planned.Offerings {
		if t := types[o.InstanceType]; t != nil {
			largest = largest.maximum(w.resources.toAmounts(t.Capacity))
		}
		if n, ok := w.indexZoneCapacityType(&o); ok && n < len(pool.ZoneQuotas) {
			zoneQuotas[pool.ZoneQuotas[n]] = true
		}
	}
	pool.SubtractNode(largest)
	for n := range zoneQuotas {
		if n > 0 {
			w.problem.ZoneQuotas[n-1].Subtract(len(planned.Pods))
		}
	}
	if id, reserved := planned.Requirements[karpenter.LabelCapacityReservationID].SingleValue(); reserved {
		at := slices.IndexFunc(w.candidates, func(c candidate) bool { return c.reservation == id })
		if at >= 0 {
			w.problem.Reservations[w.problem.Candidates[at].Reservation-1]--
		}
	}
}

// plannedTypes returns the instance types of a planned node's pool and class, by name.
func (st *baseline) plannedTypes(planned *planning.PlannedNode) map[string]*instancetypes.Type {
	types, out := st.types.TypesForPool(planned.NodePool, planned.NodeClass), map[string]*instancetypes.Type{}
	for i := range types {
		out[types[i].Name] = &types[i]
	}
	return out
}

// keepUnplaced records the unplaced pods of a result, without buffer pods.
func (st *baseline) keepUnplaced(unplaced []planning.UnplacedPods, moving map[string]*podKind) {
	for _, u := range unplaced {
		byKind := map[*podKind]int{}
		for _, pod := range u.Pods {
			kind := moving[pod.UID]
			if kind == nil || pod.Buffer != "" {
				continue
			}
			at, ok := byKind[kind]
			if !ok {
				at, byKind[kind] = len(st.committed.left), len(st.committed.left)
				st.committed.left = append(st.committed.left, planning.PodClass{Spec: *kind.spec})
			}
			pod.Node, pod.Terminating = "", false
			st.committed.left[at].Pods = append(st.committed.left[at].Pods, pod)
		}
	}
}

// daemonRequests returns the requests and the host ports of the daemons that run on the node.
func (st *baseline) daemonRequests(e *existingNode) (total corev1.ResourceList, ports []planning.HostPort) {
	sum := make(amounts, len(st.state.resources.names))
	for _, d := range st.state.daemons {
		if _, kept := findUntolerated(e.taints, d.spec.Tolerations, true); !kept && e.runsDaemon(d) {
			sum, ports = sum.plus(d.requests), append(ports, d.spec.HostPorts...)
		}
	}
	return st.state.resources.toResourceList(sum), ports
}
