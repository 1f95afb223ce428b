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
	node *planning.Node
	// openRequirements are the requirements of a NodeClaim that is not launched yet.
	openRequirements planning.Requirements
	taints           []corev1.Taint
	// markedForDeletion nodes take no pods, and the pods on them are planned again.
	markedForDeletion bool
	// antiAffine are the running pods with a required anti-affinity.
	antiAffine []*planning.PodClass
}

// addNodes adds the nodes, initialized ones first. Those marked for deletion come last, so that the
// packer's nodes are a prefix of the list. It adds the labels that running pods name.
func (w *state) addNodes(stock instancetypes.InstanceTypes, named namedLabels) {
	nodes := make([]existingNode, len(w.snapshot.Nodes))
	w.nodes = make([]*existingNode, len(nodes))
	for i := range nodes {
		nodes[i] = newExistingNode(&w.snapshot.Nodes[i], w.snapshot)
		nodes[i].addAntiAffine(named)
		w.nodes[i] = &nodes[i]
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
	var used []int64
	arena := make([]int64, 0, len(nodes)*len(w.resources.names))
	w.problem.Nodes = make([]packing.Node, 0, len(nodes))
	for _, e := range w.nodes {
		if !e.markedForDeletion {
			has := stock.ExpectedAllocatable(e.node)
			room := w.resources.setUnreportedLimits(w.resources.toAmountsIn(&arena, has), has)
			used = used[:0]
			room.subtract(w.resources.toAmountsIn(&used, e.node.Used))
			w.problem.Nodes = append(w.problem.Nodes, packing.Node{Free: room})
		}
	}
}

// registrationLabels are the labels of each registered node of a NodeClaim.
var registrationLabels = planning.RegistrationLabels.Labels()

func newExistingNode(node *planning.Node, s *planning.Snapshot) existingNode {
	e := existingNode{node: node, taints: node.Taints, markedForDeletion: node.MarkedForDeletion}
	if node.Claim != "" && (!node.Initialized || node.Rebooting) {
		e.taints = lastingTaints(node.Taints, s.FindStartupTaints(node))
	}
	if node.Claim != "" && !node.Launched {
		e.openRequirements = planning.NewNodeClaimRequirements(node.Requirements).Intersect(e.labelRequirements())
	}
	return e
}

// addAntiAffine sets antiAffine, and adds the topology keys of these pods to the labels: the pods may keep pending pods away.
func (e *existingNode) addAntiAffine(named namedLabels) {
	for _, list := range [][]planning.PodClass{e.node.Pods, e.node.DaemonPods} {
		for i := range list {
			terms := requiredAntiAffinity(list[i].Spec.Affinity)
			for j := range terms {
				named.addLabel(terms[j].TopologyKey)
			}
			if len(terms) > 0 {
				e.antiAffine = append(e.antiAffine, &list[i])
			}
		}
	}
}

// label returns the node's value of a label, by the label's stable name.
func (e *existingNode) label(key string) (string, bool) {
	if value, ok := registrationLabels[key]; ok && e.node.Claim != "" {
		return value, true
	}
	return karpenter.FindLabel(e.node.Labels, key)
}

// labelRequirements returns the node's labels as requirements.
func (e *existingNode) labelRequirements() planning.Requirements {
	out := planning.NewLabelRequirements(e.node.Labels)
	if e.node.Claim != "" {
		maps.Copy(out, planning.RegistrationLabels)
	}
	return out
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
// value that it may still get, and one whose node has not joined will have some host name.
func (e *existingNode) satisfiesRequirements(want planning.Requirements) bool {
	for key, values := range want {
		if e.openRequirements != nil && key != corev1.LabelHostname {
			if !e.openRequirements.AllowedValues(key).IsSubset(values) {
				return false
			}
			continue
		}
		value, ok := e.label(key)
		if !ok && key == corev1.LabelHostname && (e.openRequirements != nil || e.node.Claim != "") {
			value, ok = plannedHostname, true
		}
		if ok && !allowsLabel(values, key, value) || !ok && !values.AllowsAbsent() {
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
	value, ok := e.label(key)
	return value, ok && !isUnknownPartition(key, value)
}

// newNomination nominates the node for the pod.
func (e *existingNode) newNomination(namespace string, pod planning.PodRef) planning.Nomination {
	n := planning.Nomination{Namespace: namespace, Pod: pod, Claim: e.node.Claim}
	if e.node.Claim == "" || e.node.Registered {
		n.Node = e.node.Name
	}
	return n
}
