package planvalidator

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// world is the cluster as the plan would leave it.
type world struct {
	scenario *Scenario
	result   *Result
	nodes    []*node
	// pods are all that have a node, bound ones first.
	pods []*pod
	// offered are all ways to launch, whatever the plan chose.
	offered []place
	daemons []*pod
	// rooms are what the places have for pods, as far as it was asked.
	rooms []corev1.ResourceList
	// likenesses are the pods by what terms see of them, once it was asked.
	likenesses []likeness
	// launchables are domains that could be launched, by what asks for them.
	launchables map[string]map[string]bool
}

// node is a node of that cluster.
type node struct {
	name string
	place
	// plan is nil for a node that exists already.
	plan *NewNode
	// meta is the node as Kubernetes' matching wants it.
	meta   *corev1.Node
	taints []corev1.Taint
	pods   []*pod
	// daemons are those that the node carries beside its pods.
	daemons []*pod
}

func (n *node) labels() labels.Set { return n.meta.Labels }

// newWorld builds what can be built of the plan and reports the rest.
func newWorld(s *Scenario, r *Result, out *report) *world {
	w := &world{scenario: s, result: r, offered: s.places()}
	for i := range s.DaemonSetPods {
		d := newPod(&s.DaemonSetPods[i])
		d.bound = true // given, and not the plan's
		w.daemons = append(w.daemons, d)
	}
	for i := range s.Nodes {
		w.exist(&s.Nodes[i], out)
	}
	pending := w.pending()
	for i := range r.NewNodes {
		w.launch(i, pending, out)
	}
	for _, name := range slices.Sorted(maps.Keys(r.ExistingPods)) {
		w.join(name, pending, out)
	}
	pending.leave(r, out)
	for _, n := range w.nodes {
		n.settle(w.daemons)
		w.pods = append(w.pods, n.pods...)
	}
	slices.SortStableFunc(w.pods, func(a, b *pod) int { return rank(a) - rank(b) })
	return w
}

func rank(p *pod) int {
	if p.bound {
		return 0
	}
	return 1
}

// exist adds a node that is there already. Whether its pool would launch it again
// does not matter.
func (w *world) exist(from *Node, out *report) {
	i := slices.IndexFunc(w.scenario.InstanceTypes, func(t InstanceType) bool { return t.Name == from.InstanceType })
	if i < 0 {
		out.add(Offered, from.Name, "the scenario has no instance type %s", from.InstanceType)
		return
	}
	pool := &NodePool{} // of a node that no pool has launched
	for j := range w.scenario.NodePools {
		if w.scenario.NodePools[j].Metadata.Name == from.NodePool {
			pool = &w.scenario.NodePools[j]
		}
	}
	machine, offering := &w.scenario.InstanceTypes[i], &Offering{Zone: from.Zone, CapacityType: from.CapacityType}
	for _, o := range machine.Offerings {
		if o.Zone == from.Zone {
			offering.ZoneID = o.ZoneID
		}
	}
	n := &node{name: from.Name, place: place{pool: pool, machine: machine, offering: offering, fixed: determined(pool, machine, offering)}}
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

// launch adds a node of the plan, with its pods.
func (w *world) launch(i int, pending *roll, out *report) {
	plan := &w.result.NewNodes[i]
	n := &node{name: fmt.Sprintf("new node %d (%s)", i, plan.InstanceType), plan: plan}
	n.pods = pending.take(plan.Pods, n.name, out)
	if len(n.pods) == 0 {
		out.add(Once, n.name, "it has no pods")
	}
	p, ok := w.find(plan.NodePool, plan.InstanceType, plan.Zone, plan.CapacityType)
	if !ok {
		out.add(Offered, n.name, "pool %q does not offer it in %s, %s", plan.NodePool, plan.Zone, plan.CapacityType)
		return
	}
	if !p.offering.Available {
		out.add(Offered, n.name, "it is not available in %s, %s", plan.Zone, plan.CapacityType)
	}
	n.place = p
	w.nodes = append(w.nodes, n)
}

// join puts pods onto a node that exists.
func (w *world) join(name string, pending *roll, out *report) {
	pods := pending.take(w.result.ExistingPods[name], name, out)
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.plan == nil && n.name == name })
	if i < 0 {
		out.add(Once, name, "the plan puts pods onto a node that does not exist")
		return
	}
	w.nodes[i].pods = append(w.nodes[i].pods, pods...)
}

func (w *world) find(pool, machine, zone, capacityType string) (place, bool) {
	for _, p := range w.offered {
		if p.pool.Metadata.Name == pool && p.machine.Name == machine && p.offering.Zone == zone && p.offering.CapacityType == capacityType {
			return p, true
		}
	}
	return place{}, false
}

// settle decides on the node's labels and daemons once its pods are known.
func (n *node) settle(daemons []*pod) {
	for _, p := range n.pods {
		p.node = n
	}
	n.taints = n.pool.Spec.Template.Spec.Taints
	n.meta = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: n.choose()}}
	for _, d := range daemons {
		if _, blocked := blocking(n.taints, d.Spec.Tolerations); !blocked && d.selects(n.meta) {
			n.daemons = append(n.daemons, d)
		}
	}
}
