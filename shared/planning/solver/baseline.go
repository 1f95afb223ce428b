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

// baseline is the cluster before a simulated removal: everything that does not depend on which nodes
// are removed. Expensive values are computed on first use and cached until a result is committed.
type baseline struct {
	// state reads all nodes that are not being deleted, including nodes removed by commits.
	state *state
	types instancetypes.InstanceTypes
	// nodeIndexes maps snapshot nodes to state nodes; noIndex for nodes that were being deleted from the
	// start.
	nodeIndexes []int
	// removedNodes are the nodes removed by commits.
	removedNodes packing.Set
	kinds        podKinds
	// movable are the reschedulable pods, and residents all pods that rules count, by node.
	movable   [][]kindPods
	residents [][]resident
	owners    antiAffinityRules
	// ports lists, by host port, the nodes that use it; a node may appear more than once.
	ports map[int32][]int
	cache ruleCache
	// committed holds all commits. byName indexes the nodes by name.
	committed committedPods
	byName    map[string]int
	// nodes are the packer's nodes of the last simulation. talliedNodes are those of them with tallies
	// to reset. offerings is shared by all simulations.
	nodes        []packing.Node
	talliedNodes []int
	offerings    map[string]nodeOfferings
	// recentNodes are the nodes whose consolidateAfter has not passed; nil until first used.
	recentNodes packing.Set
	// scheduler is nil until FindStrandedPods or Commit needs it.
	scheduler *schedulerSimulation
}

// kindPods is a number of pods of one kind that must be rescheduled if their node is removed.
type kindPods struct {
	kind *podKind
	pods []planning.PodRef
}

// resident is a number of pods of one kind on a node, including daemons.
type resident struct {
	kind  *podKind
	count int
}

// ruleCache caches the counts and selections of rules.
type ruleCache struct {
	counts   map[string]map[string]int
	selected map[string]*selectedPods
	values   map[string]*labelValues
}

// selectedPods are the label sets that a selection matches, and where their pods run.
type selectedPods struct {
	has   map[*labelSet]bool
	bound []boundPods
}

// labelValues are the possible values of a label: all of them, sorted; those of buyable nodes; and the
// number of existing nodes for each.
type labelValues struct {
	all    []string
	market map[string]bool
	nodes  map[string]int
}

// newBaseline reads a snapshot. It does not place the waiting pods, but reads their requests and
// labels.
func newBaseline(s planning.Snapshot, stock instancetypes.InstanceTypes, waiting []planning.PodClass) *baseline {
	st := &baseline{types: stock, nodeIndexes: make([]int, len(s.Nodes)), offerings: map[string]nodeOfferings{}}
	// The state's nodes point into this list, which commits copy when they add the first planned node.
	s.Nodes = slices.Clip(maskUnreadyNodes(s.Nodes))
	known := st.readKinds(&s, waiting)
	batch := &planning.Batch{Snapshot: s, Pending: st.kinds.podClasses()}
	st.state = newState(batch, stock)
	if st.state.sets == nil {
		st.state.sets = map[string]packing.Set{}
	}
	st.state.keys.known = map[string]string{}
	st.readNodes(known)
	return st
}

// maskUnreadyNodes returns the nodes with the capacity that removals may use. Nodes that are not
// initialized or not ready offer no capacity, but count in everything else: Karpenter fails a
// simulation whose pods land on a node that is not initialized. The pods expected on NodeClaims are
// already placed.
func maskUnreadyNodes(nodes []planning.Node) []planning.Node {
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

// readKinds finds the kinds of all running and waiting pods, and returns the kinds of each node's
// classes.
func (st *baseline) readKinds(s *planning.Snapshot, waiting []planning.PodClass) [][]*podKind {
	out := make([][]*podKind, len(s.Nodes))
	for i := range s.Nodes {
		out[i] = make([]*podKind, len(s.Nodes[i].Pods))
		for j := range s.Nodes[i].Pods {
			out[i][j] = st.kinds.findKind(&s.Nodes[i].Pods[j].Spec)
		}
	}
	for i := range waiting {
		st.kinds.findKind(&waiting[i].Spec)
	}
	return out
}

// readNodes records which pods run on each node. known has the kinds of each node's classes.
func (st *baseline) readNodes(known [][]*podKind) {
	w := st.state
	places := make(map[*planning.Node]int, len(w.nodes))
	for i := range w.problem.Nodes {
		places[w.nodes[i].node] = i
	}
	count := len(w.problem.Nodes)
	st.removedNodes = packing.NewSet(count)
	st.movable, st.residents, st.ports = make([][]kindPods, count), make([][]resident, count), map[int32][]int{}
	for j := range w.snapshot.Nodes {
		node := &w.snapshot.Nodes[j]
		i, stays := places[node]
		if !stays {
			st.nodeIndexes[j] = noIndex
			continue
		}
		st.nodeIndexes[j] = i
		st.readPods(i, node, known[j])
	}
	// All namespaces are known now, which namespace selectors need.
	for i := range st.residents {
		for _, one := range st.residents[i] {
			st.countAntiAffinity(i, one.kind, one.count)
		}
	}
	st.owners.indexRules()
}

func (st *baseline) readPods(i int, node *planning.Node, known []*podKind) {
	for k := range node.Pods {
		class := &node.Pods[k]
		if pods := class.ReschedulablePods(); len(pods) > 0 {
			st.findLabelSet(known[k])
			st.movable[i] = append(st.movable[i], kindPods{known[k], pods})
		}
		if n := planning.CountNotTerminating(class.Pods); n > 0 {
			st.countResidents(i, known[k], n)
		}
	}
	for k := range node.DaemonPods {
		if n := planning.CountNotTerminating(node.DaemonPods[k].Pods); n > 0 {
			st.countResidents(i, st.kinds.findKind(&node.DaemonPods[k].Spec), n)
		}
	}
	st.addHostPorts(i, node.HostPorts)
}

// countResidents counts n pods of a kind on a node.
func (st *baseline) countResidents(i int, k *podKind, n int) {
	st.findLabelSet(k)
	k.set.bound = append(k.set.bound, boundPods{i, n})
	st.residents[i] = append(st.residents[i], resident{k, n})
}

// findLabelSet sets the label set of a kind.
func (st *baseline) findLabelSet(k *podKind) {
	if k.set == nil {
		k.set = st.state.topology.sets.findSet(k.spec.Namespace, k.spec.Labels)
	}
}

// countAntiAffinity counts n pods of a kind on a node for the kind's anti-affinity rules.
func (st *baseline) countAntiAffinity(i int, k *podKind, n int) {
	if k.antiAffinity == nil && requiredAntiAffinity(k.spec.Affinity) != nil {
		k.antiAffinity = st.owners.readRules(st.state, k)
	}
	for _, o := range k.antiAffinity {
		o.of.at = append(o.of.at, rulePods{node: i, count: n, inside: o.inside})
	}
}

// addHostPorts marks host ports as in use on a node.
func (st *baseline) addHostPorts(i int, ports []planning.HostPort) {
	for _, port := range ports {
		if !slices.Contains(st.ports[port.Port], i) {
			st.ports[port.Port] = append(st.ports[port.Port], i)
		}
	}
}

// selectPods returns the pods that a selection matches.
func (st *baseline) selectPods(s selection) *selectedPods {
	key := s.key()
	if got, ok := st.cache.selected[key]; ok {
		return got
	}
	out := &selectedPods{has: map[*labelSet]bool{}}
	for _, set := range st.state.topology.sets.selectSets(s) {
		out.has[set] = true
		out.bound = append(out.bound, set.bound...)
	}
	if st.cache.selected == nil {
		st.cache.selected = map[string]*selectedPods{}
	}
	st.cache.selected[key] = out
	return out
}

// countDomains counts the selected pods by domain, on the nodes of a region; a nil region is all
// nodes.
func (st *baseline) countDomains(id, key string, s selection, where *region) map[string]int {
	if got, ok := st.cache.counts[id]; ok {
		return got
	}
	out := map[string]int{}
	for _, b := range st.selectPods(s).bound {
		if domain, ok := st.state.nodes[b.node].domainValue(key); ok && (where == nil || where.nodes.Has(b.node)) {
			out[domain] += b.count
		}
	}
	if st.cache.counts == nil {
		st.cache.counts = map[string]map[string]int{}
	}
	st.cache.counts[id] = out
	return out
}

// domainValues returns the possible values of a label.
func (st *baseline) domainValues(key string) *labelValues {
	if got, ok := st.cache.values[key]; ok {
		return got
	}
	out := &labelValues{market: map[string]bool{}, nodes: map[string]int{}}
	for _, value := range st.state.offeringValues(key) {
		out.market[value] = true
	}
	for i := range st.state.problem.Nodes {
		if value, ok := st.state.nodes[i].domainValue(key); ok && !st.removedNodes.Has(i) {
			out.nodes[value]++
		}
	}
	out.all = planning.SortUnique(append(slices.Collect(maps.Keys(out.market)), slices.Collect(maps.Keys(out.nodes))...))
	if st.cache.values == nil {
		st.cache.values = map[string]*labelValues{}
	}
	st.cache.values[key] = out
	return out
}

// nodesUnderConsolidateAfter returns the indexes of nodes whose consolidateAfter has not passed since
// the last pod event.
func (st *baseline) nodesUnderConsolidateAfter() packing.Set {
	if st.recentNodes == nil {
		st.recentNodes = packing.NewSet(len(st.state.problem.Nodes))
		for i := range st.state.problem.Nodes {
			if node := st.state.nodes[i].node; st.state.isUnderConsolidateAfter(node) {
				st.recentNodes.Add(i)
			}
		}
	}
	return st.recentNodes
}

// isUnderConsolidateAfter reports whether the consolidateAfter of a node has not passed (Karpenter:
// pkg/utils/disruption/disruption.go, IsUnderConsolidateAfter). Only dynamic NodePools count;
// Karpenter's scheduler does not see static ones.
func (w *state) isUnderConsolidateAfter(n *planning.Node) bool {
	at := slices.IndexFunc(w.pools, func(p *pool) bool { return p.name == n.NodePool })
	if at < 0 || !n.Initialized || planning.NotReadyReason(w.pools[at].object) != "" {
		return false
	}
	after := w.pools[at].object.Spec.Disruption.ConsolidateAfter
	return !after.IsNever() && !after.HasElapsed(n.IdleSince(), w.snapshot.TakenAt)
}

// isHostname reports whether a topology key is that of host names.
func isHostname(key string) bool { return karpenter.NormalizeLabel(key) == corev1.LabelHostname }
