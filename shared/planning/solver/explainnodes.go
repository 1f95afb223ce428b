package solver

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// ExistingNodeFit is the rule by which an existing node, or a NodeClaim that will become one, cannot hold
// a pod.
type ExistingNodeFit struct {
	// Node is the name of the node in the snapshot.
	Node string
	// Rule is planning.RuleTaints, planning.RuleRequirements, planning.RuleResources, NodeDeleting or
	// NodePorts; empty if the pod fits, as far as no other pod needs the capacity and no rule over other
	// pods forbids it.
	Rule string
	// Key is the taint, the label or the resource to which the rule refers.
	Key string
}

// Rules of ExistingNodeFits that NodePools do not have.
const (
	// NodeDeleting: the node is being removed.
	NodeDeleting = "deleting"
	// NodePorts: the node uses a host port of the pod.
	NodePorts = "host-ports"
)

// ExplainNodes explains each node of the batch for one pod of the class, in the snapshot's order.
func ExplainNodes(batch planning.Batch, stock instancetypes.InstanceTypes, class planning.PodClass) []ExistingNodeFit {
	batch.Pending = []planning.PodClass{class}
	w := batchTask{&batch, stock}.newState()
	w.readClasses(&batch)
	c := w.classes[0]
	anyOf, _ := requiredAlternatives(c.spec)
	rules := make(map[string]ExistingNodeFit, len(w.nodes))
	for i, e := range w.nodes {
		one := ExistingNodeFit{Node: e.node.Name}
		one.Rule, one.Key = w.explainNode(i, c, anyOf)
		rules[e.node.Name] = one
	}
	out := make([]ExistingNodeFit, 0, len(batch.Snapshot.Nodes))
	for i := range batch.Snapshot.Nodes {
		out = append(out, rules[batch.Snapshot.Nodes[i].Name])
	}
	return out
}

// explainNode returns the first rule by which the i-th node of the state cannot hold the class.
func (w *state) explainNode(i int, c *podClass, anyOf []planning.Requirements) (rule, key string) {
	e := w.nodes[i]
	if e.markedForDeletion {
		return NodeDeleting, ""
	}
	if taint, kept := findUntolerated(e.taints, c.spec.Tolerations, true); kept {
		return planning.RuleTaints, taint.ToString()
	}
	if !slices.ContainsFunc(anyOf, e.satisfiesRequirements) {
		return planning.RuleRequirements, e.findUnmetLabel(anyOf)
	}
	if !c.requests.fitsIn(w.problem.Nodes[i].Free) {
		at, _ := c.requests.largestShortage(w.problem.Nodes[i].Free)
		return planning.RuleResources, string(w.resources.names[at])
	}
	if planning.PortsConflict(e.node.HostPorts, c.spec.HostPorts) {
		return NodePorts, ""
	}
	return "", ""
}

// findUnmetLabel returns the first label of the first alternative that the node does not have as required.
func (e *existingNode) findUnmetLabel(anyOf []planning.Requirements) string {
	if len(anyOf) == 0 {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(anyOf[0])) {
		if !e.satisfiesRequirements(planning.Requirements{key: anyOf[0][key]}) {
			return key
		}
	}
	return ""
}
