package planvalidator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// finalCluster is the cluster after the plan.
type finalCluster struct {
	scenario *Scenario
	result   *Result
	nodes    []*node
	// removing are the nodes that are being removed; they take no pods.
	removing []*node
	// pods are all pods with a node, bound ones first.
	pods []*pod
	// offered are all ways to launch a node.
	offered []launchOption
	// index has the places of offered by NodePool, type, zone and capacity type, computed on first use.
	index   map[[4]string]int
	daemons []*pod
	// rooms are the places' free resources, computed on first use.
	rooms []corev1.ResourceList
	// likenesses groups the pods that terms cannot distinguish, and byLabel has the groups by each of their labels; both are
	// computed on first use.
	likenesses []podClass
	byLabel    map[label][]podClass
	// launchables are the domains of launchable nodes, by constraint.
	launchables map[string]map[string]bool
}

// node is a node of the final cluster.
type node struct {
	name string
	launchOption
	// plan is nil for an existing node.
	plan *NewNode
	// actual is nil if the node is as its NodePool and instance type say.
	actual *corev1.Node
	// openLabels are those of the Node.
	openLabels []string
	// meta is the node as an object for Kubernetes' matching.
	meta   *corev1.Node
	taints []corev1.Taint
	pods   []*pod
	// daemons are the DaemonSet pods of the node.
	daemons []*pod
}

func (n *node) labels() labels.Set { return n.meta.Labels }

// newFinalCluster builds the cluster of the plan and reports what it cannot build.
func newFinalCluster(s *Scenario, r *Result, out *report) *finalCluster {
	w := &finalCluster{scenario: s, result: r, offered: s.launchOptions()}
	for i := range s.DaemonSetPods {
		d := newPod(&s.DaemonSetPods[i])
		d.bound = true // given, and not the plan's
		w.daemons = append(w.daemons, d)
	}
	for i := range s.Nodes {
		w.addExistingNode(&s.Nodes[i], out)
	}
	pending := w.newPendingPods()
	for i := range r.NewNodes {
		w.addNewNode(i, pending, out)
	}
	for _, name := range slices.Sorted(maps.Keys(r.ExistingPods)) {
		w.addToExisting(name, pending, out)
	}
	pending.checkUnplaced(r, out)
	for _, n := range w.nodes {
		n.finishNode(w.daemons)
		w.pods = append(w.pods, n.pods...)
	}
	slices.SortStableFunc(w.pods, func(a, b *pod) int { return podOrder(a) - podOrder(b) })
	return w
}

func podOrder(p *pod) int {
	if p.bound {
		return 0
	}
	return 1
}

// addExistingNode adds an existing node, also if its NodePool would no longer launch it.
func (w *finalCluster) addExistingNode(from *Node, out *report) {
	pool := &NodePool{} // of a node that no pool has launched
	for j := range w.scenario.NodePools {
		if w.scenario.NodePools[j].Metadata.Name == from.NodePool {
			pool = &w.scenario.NodePools[j]
		}
	}
	n := &node{name: from.Name, actual: from.Actual, openLabels: from.OpenLabels}
	n.pool, n.offering = pool, &Offering{Zone: from.Zone, CapacityType: from.CapacityType}
	i := slices.IndexFunc(w.scenario.InstanceTypes, func(t InstanceType) bool { return t.Name == from.InstanceType })
	switch {
	case from.Actual != nil:
		is := from.Actual.Status
		n.machine = &InstanceType{Name: from.InstanceType, Capacity: is.Capacity, Overhead: subtractResources(is.Capacity, is.Allocatable)}
		n.fixed = maps.Clone(from.Actual.Labels)
	case i < 0:
		out.add(Offered, from.Name, "the scenario has no instance type %s", from.InstanceType)
		return
	default:
		n.machine = &w.scenario.InstanceTypes[i]
		for _, o := range n.machine.Offerings {
			if o.Zone == from.Zone {
				n.offering.ZoneID = o.ZoneID
			}
			if o.Zone == from.Zone && o.CapacityType == from.CapacityType {
				n.offering.Price = o.Price
			}
		}
		n.fixed = fixedLabels(pool, n.machine, n.offering)
	}
	n.offering.Price = cmp.Or(from.Price, n.offering.Price)
	if from.Removing {
		w.removing = append(w.removing, n)
		return
	}
	for j := range from.Pods {
		if phase := from.Pods[j].Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		one := newPod(&from.Pods[j])
		one.bound = true
		n.pods = append(n.pods, one)
	}
	w.nodes = append(w.nodes, n)
}

// addNewNode adds a node of the plan with its pods.
func (w *finalCluster) addNewNode(i int, pending *pendingPods, out *report) {
	plan := &w.result.NewNodes[i]
	n := &node{name: fmt.Sprintf("new node %d (%s)", i, plan.InstanceType), plan: plan}
	n.pods = pending.claimPods(plan.Pods, n.name, out)
	if len(n.pods) == 0 {
		out.add(Once, n.name, "the node has no pods")
	}
	p, ok := w.findOption(plan.NodePool, plan.InstanceType, plan.Zone, plan.CapacityType)
	if !ok {
		out.add(Offered, n.name, "pool %q has no such offering in %s, %s", plan.NodePool, plan.Zone, plan.CapacityType)
		return
	}
	if !p.offering.Available {
		out.add(Offered, n.name, "the offering is not available in %s, %s", plan.Zone, plan.CapacityType)
	}
	n.launchOption = p
	w.nodes = append(w.nodes, n)
}

// addToExisting places pods on an existing node.
func (w *finalCluster) addToExisting(name string, pending *pendingPods, out *report) {
	pods := pending.claimPods(w.result.ExistingPods[name], name, out)
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.plan == nil && n.name == name })
	if i < 0 {
		out.add(Once, name, "the plan places pods on a node that does not exist")
		return
	}
	w.nodes[i].pods = append(w.nodes[i].pods, pods...)
}

// findOption returns a way to launch a node.
func (w *finalCluster) findOption(pool, machine, zone, capacityType string) (launchOption, bool) {
	if w.index == nil {
		w.index = map[[4]string]int{}
		for i, p := range w.offered {
			w.index[[4]string{p.pool.Metadata.Name, p.machine.Name, p.offering.Zone, p.offering.CapacityType}] = i
		}
	}
	i, ok := w.index[[4]string{pool, machine, zone, capacityType}]
	if !ok {
		return launchOption{}, false
	}
	return w.offered[i], true
}

// finishNode sets the labels and daemons of the node once its pods are known.
func (n *node) finishNode(daemons []*pod) {
	for _, p := range n.pods {
		p.node = n
	}
	n.setLabels(daemons)
}

// setLabels sets the labels, the taints and the daemons, whose pods an actual node already has.
func (n *node) setLabels(daemons []*pod) {
	n.meta = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: n.chooseLabels()}}
	if n.actual != nil {
		n.taints = n.actual.Spec.Taints
		return
	}
	n.taints = n.pool.Spec.Template.Spec.Taints
	for _, d := range daemons {
		if _, blocked := untoleratedTaint(n.taints, d.Spec.Tolerations); !blocked && d.canRunOn(n.meta) {
			n.daemons = append(n.daemons, d)
		}
	}
}
