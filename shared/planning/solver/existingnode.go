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

// existingNode is a node, or a NodeClaim that will become one.
type existingNode struct {
	node   *planning.Node
	labels map[string]string
	// openRequirements are the requirements of a NodeClaim that is not launched yet.
	openRequirements planning.Requirements
	taints           []corev1.Taint
	// markedForDeletion nodes take no pods, and the pods on them are planned again.
	markedForDeletion bool
}

// addNodes adds the nodes, initialized ones first. Those marked for deletion come last, so that the
// packer's nodes are a prefix of the list.
func (w *state) addNodes(stock instancetypes.InstanceTypes) {
	for i := range w.snapshot.Nodes {
		w.nodes = append(w.nodes, newExistingNode(&w.snapshot.Nodes[i], w.snapshot))
	}
	rank := func(e *existingNode) int {
		switch {
		case e.markedForDeletion:
			return 2
		case !e.node.Initialized:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(w.nodes, func(x, y *existingNode) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.node.Name, y.node.Name))
	})
	for _, e := range w.nodes {
		if !e.markedForDeletion {
			has := stock.ExpectedAllocatable(e.node)
			room := w.resources.setUnreportedLimits(w.resources.toAmounts(has), has).minus(w.resources.toAmounts(e.node.Used))
			w.problem.Nodes = append(w.problem.Nodes, packing.Node{Free: room})
		}
	}
}

// registrationLabels are the labels of each registered node of a NodeClaim.
var registrationLabels = planning.RegistrationLabels.Labels()

func newExistingNode(node *planning.Node, s *planning.Snapshot) *existingNode {
	e := &existingNode{node: node, taints: node.Taints, markedForDeletion: node.MarkedForDeletion, labels: make(map[string]string, len(node.Labels)+len(registrationLabels))}
	for key, value := range node.Labels {
		e.labels[karpenter.NormalizeLabel(key)] = value
	}
	if node.Claim != "" {
		maps.Copy(e.labels, registrationLabels)
	}
	if node.Claim != "" && (!node.Initialized || node.Rebooting) {
		e.taints = lastingTaints(node.Taints, findStartupTaints(node.NodePool, s))
	}
	if node.Claim != "" && !node.Launched {
		e.openRequirements = planning.NewNodeClaimRequirements(node.Requirements).Intersect(planning.NewLabelRequirements(e.labels))
	}
	return e
}

func findStartupTaints(pool string, s *planning.Snapshot) []corev1.Taint {
	for i := range s.NodePools {
		if s.NodePools[i].Name == pool {
			return s.NodePools[i].Spec.Template.Spec.StartupTaints
		}
	}
	return nil
}

// nodesFor returns the nodes that meet the requirements.
func (w *state) nodesFor(r *feasibleSet) packing.Set {
	if len(w.problem.Nodes) == 0 {
		return nil
	}
	out := packing.NewSet(len(w.problem.Nodes))
	for i := range w.problem.Nodes {
		if !w.isRemoved(i) && w.isFeasibleNode(r, i) {
			out.Add(i)
		}
	}
	return out
}

// isFeasibleNode reports whether the node meets the requirements.
func (w *state) isFeasibleNode(r *feasibleSet, i int) bool {
	_, kept := findUntolerated(w.nodes[i].taints, r.tolerations, r.relaxed)
	return !kept && w.nodes[i].satisfiesRequirements(r.requirements)
}

// satisfiesRequirements reports whether the node meets the requirements. A label that a node does not
// have is absent, even a well-known one. A NodeClaim that is not launched must meet them with every
// value that it may still get.
func (e *existingNode) satisfiesRequirements(want planning.Requirements) bool {
	if e.openRequirements != nil {
		return e.openRequirements.Guarantees(want)
	}
	for key, values := range want {
		value, ok := e.labels[key]
		if ok && !values.Has(value) || !ok && !values.AllowsAbsent() {
			return false
		}
	}
	return true
}

// domainValue returns the node's value of a topology key, if it is known.
func (e *existingNode) domainValue(key string) (string, bool) {
	key = karpenter.NormalizeLabel(key)
	if e.openRequirements != nil {
		return e.openRequirements[key].SingleValue()
	}
	value, ok := e.labels[key]
	return value, ok
}

// newNomination nominates the node for the pod.
func (e *existingNode) newNomination(namespace string, pod planning.PodRef) planning.Nomination {
	n := planning.Nomination{Namespace: namespace, Pod: pod, Claim: e.node.Claim}
	if e.node.Claim == "" || e.node.Registered {
		n.Node = e.node.Name
	}
	return n
}
