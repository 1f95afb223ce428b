package solver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// standing is the cluster as it stands before a simulation is asked anything: all
// that does not depend on which nodes are to go. What takes long to find out is
// found out when it is first asked for, and kept until something is taken.
type standing struct {
	// w reads all nodes that are not going, those that were taken included.
	w     *world
	stock instancetypes.InstanceTypes
	// at are the places in the world of the snapshot's nodes, -1 of those that were
	// going from the beginning.
	at []int
	// gone are the nodes that were taken.
	gone  packing.Set
	kinds podKinds
	// runs are the pods that can be moved, and residents all that count in rules, by
	// node.
	runs      [][]run
	residents [][]resident
	owners    owners
	// ports are the nodes on which a host port is taken, some of them often.
	ports map[int32][]int
	found findings
	// arrived is what was taken, and byName finds nodes for it.
	arrived arrivals
	byName  map[string]int
	// nodes are those of the question that was asked last, with the tallies of its
	// rules on those that tallied lists; sold are the sales of all questions.
	nodes   []packing.Node
	tallied []int
	sold    map[string]sale
	// young are the nodes whose consolidateAfter has not passed, once somebody has asked.
	young packing.Set
	// rehearsal is nil until somebody asks where Kubernetes would put pods.
	rehearsal *rehearsal
}

// run is a number of pods of one kind on a node that need another node once theirs is
// gone.
type run struct {
	kind *podKind
	pods []planning.PodRef
}

// resident is a number of pods of one kind on a node, daemons included.
type resident struct {
	kind  *podKind
	count int
}

// findings are what was found out of rules, by what was asked.
type findings struct {
	counts map[string]map[string]int
	chosen map[string]*chosen
	values map[string]*labelValues
}

// chosen are the pods that a selection picks, and where they run.
type chosen struct {
	has   map[*labelSet]bool
	bound []boundPods
}

// labelValues are what a label may be: all values in order, those that could be
// bought, and how many nodes have each.
type labelValues struct {
	all    []string
	market map[string]bool
	nodes  map[string]int
}

// newStanding reads a snapshot. The pods that wait are not placed, but what they ask
// for is looked at.
func newStanding(s planning.Snapshot, stock instancetypes.InstanceTypes, waiting []planning.PodClass) *standing {
	st := &standing{stock: stock, at: make([]int, len(s.Nodes)), sold: map[string]sale{}}
	s.Nodes = steady(s.Nodes)
	known := st.readKinds(&s, waiting)
	batch := &planning.Batch{Snapshot: s, Pending: st.kinds.classes()}
	st.w = newWorld(&s, stock, axisOf(batch), named(batch))
	if st.w.sets == nil {
		st.w.sets = map[string]packing.Set{}
	}
	st.w.shapes.known = map[string]string{}
	st.readNodes(known)
	return st
}

// steady returns the nodes with the capacity that removals may use. Nodes that are not
// initialized or not ready have none, and count in everything else: Karpenter fails a
// simulation whose pods land on a node that is not initialized. The pods expected on
// NodeClaims have been placed before.
func steady(nodes []planning.Node) []planning.Node {
	out := slices.Clone(nodes)
	for i := range out {
		n := &out[i]
		n.ExpectedPods = nil
		if !n.MarkedForDeletion && (!n.Ready || n.Claim != "" && !n.Initialized) {
			n.Capacity = n.CapacityInLimits()
			n.Allocatable, n.Used = nil, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}
	}
	return out
}

// readKinds tells the pods apart that can be moved or wait, and gives the kinds of
// each node's classes.
func (st *standing) readKinds(s *planning.Snapshot, waiting []planning.PodClass) [][]*podKind {
	out := make([][]*podKind, len(s.Nodes))
	for i := range s.Nodes {
		out[i] = make([]*podKind, len(s.Nodes[i].Pods))
		for j := range s.Nodes[i].Pods {
			out[i][j] = st.kinds.of(&s.Nodes[i].Pods[j].Spec)
		}
	}
	for i := range waiting {
		st.kinds.of(&waiting[i].Spec)
	}
	return out
}

// readNodes lists who runs where, by the kinds of each node's classes.
func (st *standing) readNodes(known [][]*podKind) {
	w := st.w
	places := make(map[*planning.Node]int, len(w.nodes))
	for i := range w.problem.Nodes {
		places[w.nodes[i].node] = i
	}
	count := len(w.problem.Nodes)
	st.gone = packing.NewSet(count)
	st.runs, st.residents, st.ports = make([][]run, count), make([][]resident, count), map[int32][]int{}
	for j := range w.snapshot.Nodes {
		node := &w.snapshot.Nodes[j]
		i, stays := places[node]
		if !stays {
			st.at[j] = -1
			continue
		}
		st.at[j] = i
		st.readPods(i, node, known[j])
	}
	// Which namespaces there are decides what some rules select.
	for i := range st.residents {
		for _, one := range st.residents[i] {
			st.own(i, one.kind, one.count)
		}
	}
	st.owners.index()
}

func (st *standing) readPods(i int, node *planning.Node, known []*podKind) {
	for k := range node.Pods {
		class := &node.Pods[k]
		if pods := class.ReschedulablePods(); len(pods) > 0 {
			st.nameSet(known[k])
			st.runs[i] = append(st.runs[i], run{known[k], pods})
		}
		if n := planning.CountNotTerminating(class.Pods); n > 0 {
			st.house(i, known[k], n)
		}
	}
	for k := range node.DaemonPods {
		if n := planning.CountNotTerminating(node.DaemonPods[k].Pods); n > 0 {
			st.house(i, st.kinds.of(&node.DaemonPods[k].Spec), n)
		}
	}
	st.claim(i, node.HostPorts)
}

// house counts n pods of a kind on a node.
func (st *standing) house(i int, k *podKind, n int) {
	st.nameSet(k)
	k.set.bound = append(k.set.bound, boundPods{i, n})
	st.residents[i] = append(st.residents[i], resident{k, n})
}

// nameSet finds the label set of a kind, by which rules select its pods.
func (st *standing) nameSet(k *podKind) {
	if k.set == nil {
		k.set = st.w.topology.sets.of(k.spec.Namespace, k.spec.Labels)
	}
}

// own counts n pods of a kind on a node for the rules that they have.
func (st *standing) own(i int, k *podKind, n int) {
	if k.owns == nil && requiredApart(k.spec.Affinity) != nil {
		k.owns = st.owners.read(st.w, k)
	}
	for _, o := range k.owns {
		o.of.at = append(o.of.at, ownedAt{node: i, count: n, inside: o.inside})
	}
}

// claim counts host ports as taken on a node.
func (st *standing) claim(i int, ports []planning.HostPort) {
	for _, port := range ports {
		if !slices.Contains(st.ports[port.Port], i) {
			st.ports[port.Port] = append(st.ports[port.Port], i)
		}
	}
}

// chosen finds the pods that a selection picks.
func (st *standing) chosen(s selection) *chosen {
	key := s.key()
	if got, ok := st.found.chosen[key]; ok {
		return got
	}
	out := &chosen{has: map[*labelSet]bool{}}
	for _, set := range st.w.topology.sets.selected(s) {
		out.has[set] = true
		out.bound = append(out.bound, set.bound...)
	}
	if st.found.chosen == nil {
		st.found.chosen = map[string]*chosen{}
	}
	st.found.chosen[key] = out
	return out
}

// counts are the pods of a selection by domain, on nodes of a region; nil is
// everywhere.
func (st *standing) counts(id, key string, s selection, where *region) map[string]int {
	if got, ok := st.found.counts[id]; ok {
		return got
	}
	out := map[string]int{}
	for _, b := range st.chosen(s).bound {
		if domain, ok := st.w.nodes[b.node].domain(key); ok && (where == nil || where.nodes.Has(b.node)) {
			out[domain] += b.count
		}
	}
	if st.found.counts == nil {
		st.found.counts = map[string]map[string]int{}
	}
	st.found.counts[id] = out
	return out
}

// values are what a label may be.
func (st *standing) values(key string) *labelValues {
	if got, ok := st.found.values[key]; ok {
		return got
	}
	out := &labelValues{market: map[string]bool{}, nodes: map[string]int{}}
	for _, value := range st.w.marketValues(key) {
		out.market[value] = true
	}
	for i := range st.w.problem.Nodes {
		if value, ok := st.w.nodes[i].domain(key); ok && !st.gone.Has(i) {
			out.nodes[value]++
		}
	}
	out.all = planning.SortUnique(append(slices.Collect(maps.Keys(out.market)), slices.Collect(maps.Keys(out.nodes))...))
	if st.found.values == nil {
		st.found.values = map[string]*labelValues{}
	}
	st.found.values[key] = out
	return out
}

// closed are the nodes whose consolidateAfter has not passed since a pod last came or
// went, by their places in the world.
func (st *standing) closed() packing.Set {
	if st.young == nil {
		st.young = packing.NewSet(len(st.w.problem.Nodes))
		for i := range st.w.problem.Nodes {
			if node := st.w.nodes[i].node; st.w.consolidatesLater(node) {
				st.young.Add(i)
			}
		}
	}
	return st.young
}

// consolidatesLater reports whether the consolidateAfter of a node has not passed
// (Karpenter: pkg/utils/disruption/disruption.go, IsUnderConsolidateAfter). Only pools
// that launch nodes for pods are asked, as upstream's scheduler knows no others.
func (w *world) consolidatesLater(n *planning.Node) bool {
	at := slices.IndexFunc(w.pools, func(p *pool) bool { return p.name == n.NodePool })
	if at < 0 || !n.Initialized || planning.NotReadyReason(w.pools[at].object) != "" {
		return false
	}
	after := w.pools[at].object.Spec.Disruption.ConsolidateAfter
	return !after.IsNever() && !after.Elapsed(n.IdleSince(), w.snapshot.TakenAt)
}

// hostname reports whether a topology key is that of host names.
func hostname(key string) bool { return karpenter.NormalizeLabel(key) == corev1.LabelHostname }
