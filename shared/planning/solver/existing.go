package solver

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// existing is a node that is there, or a claim that will become one.
type existing struct {
	node   *planning.Node
	labels map[string]string
	// open are a claim's requirements while nothing of it is launched.
	open   planning.Requirements
	taints []corev1.Taint
	// going nodes take no pods, and the pods on them are planned anew.
	going bool
}

// addNodes lists the nodes, initialized ones first. Those that are going
// come last, so that the packer's nodes are a prefix of the list.
func (w *world) addNodes(stock instancetypes.InstanceTypes) {
	for i := range w.snapshot.Nodes {
		w.nodes = append(w.nodes, settle(&w.snapshot.Nodes[i], w.snapshot))
	}
	rank := func(e *existing) int {
		switch {
		case e.going:
			return 2
		case !e.node.Initialized:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(w.nodes, func(x, y *existing) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.node.Name, y.node.Name))
	})
	for _, e := range w.nodes {
		if !e.going {
			has := stock.ExpectedAllocatable(e.node)
			room := w.axis.open(w.axis.of(has), has).minus(w.axis.of(e.node.Used))
			w.problem.Nodes = append(w.problem.Nodes, packing.Node{Room: room})
		}
	}
}

func settle(node *planning.Node, s *planning.Snapshot) *existing {
	e := &existing{node: node, taints: node.Taints, going: node.MarkedForDeletion, labels: make(map[string]string, len(node.Labels))}
	for key, value := range node.Labels {
		e.labels[karpenter.NormalizeLabel(key)] = value
	}
	if node.Claim != "" {
		maps.Copy(e.labels, planning.RegistrationLabels.Labels())
	}
	if node.Claim != "" && !node.Initialized {
		e.taints = lasting(node.Taints, startupTaints(node.NodePool, s))
	}
	if node.Claim != "" && !node.Launched {
		e.open = planning.NewNodeClaimRequirements(node.Requirements).Intersect(planning.NewLabelRequirements(e.labels))
	}
	return e
}

func startupTaints(pool string, s *planning.Snapshot) []corev1.Taint {
	for i := range s.NodePools {
		if s.NodePools[i].Name == pool {
			return s.NodePools[i].Spec.Template.Spec.StartupTaints
		}
	}
	return nil
}

// nodesOf are the nodes on which the requirements hold.
func (w *world) nodesOf(r *reach) packing.Set {
	if len(w.problem.Nodes) == 0 {
		return nil
	}
	out := packing.NewSet(len(w.problem.Nodes))
	for i := range w.problem.Nodes {
		if w.isGone(i) {
			continue
		}
		if _, kept := untolerated(w.nodes[i].taints, r.tolerate, r.relaxed); !kept && w.nodes[i].satisfies(r.want) {
			out.Add(i)
		}
	}
	return out
}

// satisfies reports whether the node is what want asks for. Labels of a node are
// facts: one that is missing is absent, well known or not. What is open in a
// claim must be good whichever way it falls.
func (e *existing) satisfies(want planning.Requirements) bool {
	if e.open != nil {
		return e.open.Guarantees(want)
	}
	for key, values := range want {
		value, ok := e.labels[key]
		if ok && !values.Has(value) || !ok && !values.AllowsAbsent() {
			return false
		}
	}
	return true
}

// domain is the node's value of a topology key, if it is known.
func (e *existing) domain(key string) (string, bool) {
	key = karpenter.NormalizeLabel(key)
	if key == corev1.LabelHostname {
		return e.node.Name, true
	}
	if e.open != nil {
		return e.open[key].SingleValue()
	}
	value, ok := e.labels[key]
	return value, ok
}

// nominate expects the pod on the node.
func (e *existing) nominate(namespace string, pod planning.PodRef) planning.Nomination {
	n := planning.Nomination{Namespace: namespace, Pod: pod, Claim: e.node.Claim}
	if e.node.Claim == "" || e.node.Registered {
		n.Node = e.node.Name
	}
	return n
}
