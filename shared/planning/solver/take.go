package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// arrivals are pods that were put on nodes since the snapshot was taken.
type arrivals struct {
	// onto are those on nodes of the world, by node.
	onto  map[int][]run
	nodes []arrival
	// left are pods that found no place.
	left []planning.PodClass
}

// arrival is a planned node, with its pods.
type arrival struct {
	name    string
	planned planning.PlannedNode
	runs    []run
}

// take commits the answer to a removal. The pods are told by their UIDs.
func (st *standing) take(result *planning.Result, nodes []int, waiting []planning.PodClass) {
	moving, removed := map[string]*podKind{}, make([]string, 0, len(nodes))
	for i := range waiting {
		for _, pod := range waiting[i].Pods {
			moving[pod.UID] = st.kinds.of(&waiting[i].Spec)
		}
	}
	for _, j := range nodes {
		removed = append(removed, st.w.snapshot.Nodes[j].Name)
		st.w.snapshot.Nodes[j].MarkedForDeletion = true
		if i := st.at[j]; i >= 0 && !st.gone.Has(i) {
			for _, one := range st.runs[i] {
				for _, pod := range one.pods {
					moving[pod.UID] = one.kind
				}
			}
			st.vacate(i)
		}
	}
	for _, one := range st.landings(result.Nominations, moving) {
		st.land(one.node, one.run)
	}
	for i := range result.Nodes {
		st.expect(&result.Nodes[i], removed, moving)
	}
	st.leave(result.Unplaced, moving)
	st.found, st.owners.over = findings{}, map[*labelSet][]*owner{}
	st.owners.index()
}

// vacate counts nobody on a node any more.
func (st *standing) vacate(i int) {
	st.gone.Add(i)
	st.w.problem.Pools = st.w.releasing([]int{i})
	for _, one := range st.residents[i] {
		set := one.kind.set
		set.bound = slices.DeleteFunc(set.bound, func(b boundPods) bool { return b.node == i })
	}
	st.residents[i], st.runs[i] = nil, nil
	delete(st.arrived.onto, i)
}

// landing is a run of pods on its way to a node.
type landing struct {
	node int
	run
}

// landings are nominations by node and kind.
func (st *standing) landings(nominations []planning.Nomination, moving map[string]*podKind) (out []landing) {
	type place struct {
		node int
		kind *podKind
	}
	byName, known := st.names(), map[place]int{}
	for _, n := range nominations {
		i, ok := byName[n.Node]
		if !ok {
			i, ok = byName[n.Claim]
		}
		kind := moving[n.Pod.UID]
		if !ok || kind == nil {
			continue // It is no answer of this simulation's.
		}
		to := place{i, kind}
		at, started := known[to]
		if !started {
			at, known[to] = len(out), len(out)
			out = append(out, landing{i, run{kind: kind}})
		}
		n.Pod.Node, n.Pod.Terminating = "", false // What comes is new.
		out[at].pods = append(out[at].pods, n.Pod)
	}
	return out
}

// names are the places of the nodes by their names and those of their claims.
func (st *standing) names() map[string]int {
	if st.byName == nil {
		st.byName = make(map[string]int, 2*len(st.residents))
		for i := range st.residents {
			node := st.w.nodes[i].node
			if node.Claim != "" {
				st.byName[node.Claim] = i
			}
			st.byName[node.Name] = i
		}
	}
	return st.byName
}

// land puts pods on a node that is there, or is coming.
func (st *standing) land(i int, one run) {
	w, node := st.w, st.w.nodes[i].node
	amounts(w.problem.Nodes[i].Room).sub(w.axis.of(one.takes()))
	st.house(i, one.kind, len(one.pods))
	st.own(i, one.kind, len(one.pods))
	node.HostPorts = append(slices.Clip(node.HostPorts), one.kind.spec.HostPorts...)
	st.claim(i, one.kind.spec.HostPorts)
	st.runs[i] = append(slices.Clip(st.runs[i]), one)
	if st.arrived.onto == nil {
		st.arrived.onto = map[int][]run{}
	}
	st.arrived.onto[i] = append(st.arrived.onto[i], one)
}

// expect counts a planned node: its pods in the rules, and the largest that it may
// become in the limits. It has no room, for it is not initialized.
func (st *standing) expect(planned *planning.PlannedNode, removed []string, moving map[string]*podKind) {
	w, made := st.w, arrival{planned: *planned}
	at := map[*podKind]int{}
	for _, placed := range planned.Pods {
		kind := moving[placed.Pod.UID]
		if kind == nil {
			continue
		}
		i, ok := at[kind]
		if !ok {
			i, at[kind] = len(made.runs), len(made.runs)
			made.runs = append(made.runs, run{kind: kind})
		}
		placed.Pod.Node, placed.Pod.Terminating = "", false
		made.runs[i].pods = append(made.runs[i].pods, placed.Pod)
	}
	made.name = st.nameOf(planned, removed)
	st.arrived.nodes = append(st.arrived.nodes, made)
	node := &planning.Node{Name: made.name, Claim: made.name, NodePool: planned.NodePool, Labels: planned.Requirements.Labels(), PricePerHour: planning.HighestPrice(planned.Offerings)}
	w.snapshot.Nodes = append(slices.Clip(w.snapshot.Nodes), *node)
	i, room := len(w.problem.Nodes), make([]int64, len(w.axis.names))
	for r := range room {
		room[r] = -1
	}
	open := planned.Requirements.Intersect(planning.RegistrationLabels)
	w.nodes = slices.Insert(w.nodes, i, &existing{node: node, labels: open.Labels(), open: open})
	w.problem.Nodes = append(w.problem.Nodes, packing.Node{Room: room})
	st.gone = append(st.gone, packing.NewSet(i + 1)[len(st.gone):]...)
	st.runs, st.residents = append(st.runs, nil), append(st.residents, nil)
	for _, one := range made.runs {
		st.house(i, one.kind, len(one.pods))
		st.own(i, one.kind, len(one.pods))
	}
	st.spend(planned)
	// Which nodes count where has been worked out without this one.
	w.reaches, w.looks, w.stricts, st.byName = map[string]*reach{}, map[lookKey]*reach{}, nil, nil
}

// spend takes a planned node off what limits, zones and reservations have left.
func (st *standing) spend(planned *planning.PlannedNode) {
	w, largest := st.w, make(amounts, len(st.w.axis.names))
	at := slices.IndexFunc(w.pools, func(p *pool) bool { return p.name == planned.NodePool })
	if w.money != nil {
		largest[w.money.at], _ = planning.PriceToMicrodollars(planning.HighestPrice(planned.Offerings))
	}
	if at < 0 { // A static pool counts its nodes by itself.
		if w.money != nil && w.money.common != nil {
			w.money.common.Count(largest)
		}
		return
	}
	pool := &w.problem.Pools[w.pools[at].index]
	types := st.typesOf(planned)
	rations := map[int]bool{}
	for _, o := range planned.Offerings {
		if t := types[o.InstanceType]; t != nil {
			largest = largest.most(w.axis.of(t.Capacity))
		}
		if n, ok := w.plane(&o); ok && n < len(pool.Rations) {
			rations[pool.Rations[n]] = true
		}
	}
	pool.Count(largest)
	for n := range rations {
		if n > 0 {
			w.problem.Rations[n-1].Spend(len(planned.Pods))
		}
	}
	if id, reserved := planned.Requirements[karpenter.LabelCapacityReservationID].SingleValue(); reserved {
		at := slices.IndexFunc(w.columns, func(c column) bool { return c.reservation == id })
		if at >= 0 {
			w.problem.Supplies[w.problem.Columns[at].Supply-1]--
		}
	}
}

// typesOf are the types that a planned node could be, by name.
func (st *standing) typesOf(planned *planning.PlannedNode) map[string]*instancetypes.Type {
	types, out := st.stock.TypesForPool(planned.NodePool, planned.NodeClass), map[string]*instancetypes.Type{}
	for i := range types {
		out[types[i].Name] = &types[i]
	}
	return out
}

// leave remembers pods that found no place.
func (st *standing) leave(unplaced []planning.UnplacedPods, moving map[string]*podKind) {
	for _, u := range unplaced {
		byKind := map[*podKind]int{}
		for _, pod := range u.Pods {
			kind := moving[pod.UID]
			if kind == nil || pod.Buffer != "" {
				continue
			}
			at, ok := byKind[kind]
			if !ok {
				at, byKind[kind] = len(st.arrived.left), len(st.arrived.left)
				st.arrived.left = append(st.arrived.left, planning.PodClass{Spec: *kind.spec})
			}
			pod.Node, pod.Terminating = "", false
			st.arrived.left[at].Pods = append(st.arrived.left[at].Pods, pod)
		}
	}
}

// daemonsOf is what daemons take of a node.
func (st *standing) daemonsOf(e *existing) (total corev1.ResourceList, ports []planning.HostPort) {
	sum := make(amounts, len(st.w.axis.names))
	for _, d := range st.w.daemons {
		if _, kept := untolerated(e.taints, d.spec.Tolerations, true); !kept && e.attracts(d) {
			sum, ports = sum.plus(d.need), append(ports, d.spec.HostPorts...)
		}
	}
	return st.w.axis.list(sum), ports
}
