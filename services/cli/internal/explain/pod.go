package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// apiVersion is the version of the JSON.
const apiVersion = "cli.joist.sh/v1"

// States of a pod in an explanation.
const (
	// StateLaunching: a new node is planned for the pod.
	StateLaunching = "launching"
	// StateExpected: the pod is expected on an existing node or NodeClaim.
	StateExpected = "expected"
	// StateRunning: the pod is bound to a node.
	StateRunning = "running"
	// StateUnschedulable: no node can hold the pod, and no NodePool launches one for it.
	StateUnschedulable = "unschedulable"
	// StateIgnored: Joist does not plan the pod.
	StateIgnored = "ignored"
)

// PodExplanation explains why a pod is where it is.
type PodExplanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Pod is the namespace and the name.
	Pod string `json:"pod"`
	// At is the time of the decision.
	At     time.Time `json:"at"`
	State  string    `json:"state"`
	Answer string    `json:"answer"`
	// Batch is the sequence number of the batch, if the decision is recorded.
	Batch        uint64        `json:"batch,omitempty"`
	Reproduction *Reproduction `json:"reproduction,omitempty"`
	Node         *PodPlace     `json:"node,omitempty"`
	// Launch is why the node that was planned for the pod has its instance type. If an earlier plan launched
	// it, LaunchReproduction compares that plan.
	Launch             *Launch       `json:"launch,omitempty"`
	LaunchReproduction *Reproduction `json:"launchReproduction,omitempty"`
	// NodePools are all dynamic NodePools, in the order in which they are tried, with the decision for this
	// pod alone on a new node.
	NodePools []PoolOption `json:"nodePools"`
	// Nodes are the existing nodes, grouped by the rule by which they cannot hold the pod.
	Nodes []NodeGroup `json:"existingNodes"`
	Notes []string    `json:"notes"`
}

// PodPlace is the node of a pod.
type PodPlace struct {
	// Name is the node, and Claim the NodeClaim; a node that has not joined has no name.
	Name     string `json:"name,omitempty"`
	Claim    string `json:"nodeClaim,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	// InstanceType, Zone and CapacityType are those of the instance; empty before the launch.
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
}

// PoolOption is what a NodePool offers to the pod.
type PoolOption struct {
	NodePool string `json:"nodePool"`
	Weight   int32  `json:"weight"`
	// Accepts reports whether the NodePool would launch a node for the pod alone, and Cheapest is that
	// node's cheapest offering.
	Accepts  bool           `json:"accepts"`
	Cheapest *OfferingPrice `json:"cheapest,omitempty"`
	// Rule and Detail are why it does not; Key is the label, resource or taint of the rule.
	Rule   string `json:"rule,omitempty"`
	Key    string `json:"key,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Changes are the edits after which the NodePool would launch a node for the pod.
	Changes *PodChanges `json:"changes,omitempty"`
	// InstanceTypes are the types of the EC2NodeClass by the rule that removes them.
	InstanceTypes []TypeGroup `json:"instanceTypes"`
}

// NodeGroup is the existing nodes that one rule excludes.
type NodeGroup struct {
	// Rule is empty for nodes that could hold the pod if no other pod needs their capacity.
	Rule  string `json:"rule"`
	Key   string `json:"key,omitempty"`
	Count int    `json:"count"`
	// Example is the first of the nodes.
	Example string `json:"example"`
}

// ExplainPod explains a pod of the decision.
func (d *PlanDecision) ExplainPod(namespace, name string) (PodExplanation, error) {
	out := PodExplanation{
		APIVersion: apiVersion, Kind: "PodExplanation", Pod: namespace + "/" + name, At: d.Batch.Snapshot.TakenAt.UTC(),
		Reproduction: d.Reproduction, NodePools: []PoolOption{}, Nodes: []NodeGroup{}, Notes: []string{},
	}
	if d.Reproduction != nil {
		out.Batch = d.Batch.Seq
	}
	if reason := d.findIgnored(namespace, name); reason != "" {
		out.State, out.Answer = StateIgnored, "Joist does not plan this pod: "+reason
		return out, nil
	}
	class, pod, node, isFound := d.findPod(namespace, name)
	if !isFound {
		return out, fault.F("explaining the pod", fault.Missing, "pod %s/%s is not in these documents", namespace, name)
	}
	d.explainPlace(&out, pod, node)
	for _, p := range solver.ExplainPools(d.Batch, d.Stock, class) {
		out.NodePools = append(out.NodePools, d.newPoolOption(&p, class))
	}
	if out.State == StateUnschedulable {
		out.useRecordedRules(d.findUnplaced(pod))
	}
	out.Nodes = groupNodes(solver.ExplainNodes(d.Batch, d.Stock, class), node)
	out.Answer = out.answer()
	return out, nil
}

// findIgnored returns why the batch ignores a pod; empty if it does not.
func (d *PlanDecision) findIgnored(namespace, name string) string {
	for _, ignored := range d.Batch.Ignored {
		if ignored.Namespace == namespace && slices.ContainsFunc(ignored.Pods, func(p planning.PodRef) bool { return p.Name == name }) {
			return ignored.Reason
		}
	}
	return ""
}

// explainPlace sets the state, the node and the launch of a pod.
func (d *PlanDecision) explainPlace(out *PodExplanation, pod planning.PodRef, node string) {
	at := slices.IndexFunc(d.Plan.Nominations, func(n planning.Nomination) bool { return n.Pod.UID == pod.UID && n.Pod.Name == pod.Name })
	switch {
	case at >= 0:
		n := d.Plan.Nominations[at]
		out.State = StateExpected
		out.Node = d.newPlace(n.Node, n.Claim)
		if launch, isNew := d.ExplainLaunch(n.Claim); isNew {
			out.State, out.Launch = StateLaunching, &launch
			out.Node = &PodPlace{Claim: n.Claim, NodePool: launch.NodePool}
		}
	case node != "":
		out.State, out.Node = StateRunning, d.newPlace(node, "")
	default:
		out.State = StateUnschedulable
	}
}

// newPlace returns the node or NodeClaim of the snapshot with a name.
func (d *PlanDecision) newPlace(node, claim string) *PodPlace {
	at := slices.IndexFunc(d.Batch.Snapshot.Nodes, func(n planning.Node) bool {
		return node != "" && n.Name == node || node == "" && claim != "" && n.Claim == claim
	})
	if at < 0 {
		return &PodPlace{Name: node, Claim: claim}
	}
	n := &d.Batch.Snapshot.Nodes[at]
	out := &PodPlace{Claim: n.Claim, NodePool: n.NodePool, InstanceType: n.Labels[corev1.LabelInstanceTypeStable], Zone: n.Labels[corev1.LabelTopologyZone], CapacityType: n.Labels[karpenter.CapacityTypeLabelKey]}
	if n.HasJoined() {
		out.Name = n.Name
	}
	return out
}

func (d *PlanDecision) newPoolOption(p *solver.PoolExplanation, class planning.PodClass) PoolOption {
	out := PoolOption{NodePool: p.NodePool, Weight: p.Weight, Accepts: p.Rejection.Rule == "", Rule: p.Rejection.Rule, Key: p.Key, Detail: p.Rejection.Detail, InstanceTypes: d.groupPoolTypes(p)}
	if out.Accepts {
		cheapest := newOffering(p.Node.Offerings[0])
		out.Cheapest = &cheapest
		return out
	}
	changes := d.findChanges(class, p)
	out.Changes = &changes
	return out
}

// findUnplaced returns the rejections of a pod in the plan.
func (d *PlanDecision) findUnplaced(pod planning.PodRef) []planning.Rejection {
	for _, u := range d.Plan.Unplaced {
		if slices.ContainsFunc(u.Pods, func(p planning.PodRef) bool { return p.UID == pod.UID && p.Name == pod.Name }) {
			return u.Rejections
		}
	}
	return nil
}

// useRecordedRules replaces the decisions about the pod alone by those of the plan, in which other pods may
// have used up limits or addresses.
func (e *PodExplanation) useRecordedRules(rejections []planning.Rejection) {
	for _, r := range rejections {
		for i := range e.NodePools {
			if p := &e.NodePools[i]; p.NodePool == r.NodePool && p.Accepts {
				p.Accepts, p.Rule, p.Detail, p.Cheapest = false, r.Rule, r.Detail, nil
				p.Changes = &PodChanges{Edits: []string{"Alone, the pod would get a node of this NodePool: other pods of the batch come first."}}
			}
		}
	}
	if len(e.NodePools) == 0 && len(rejections) > 0 {
		e.Notes = append(e.Notes, rejections[0].Detail)
	}
}

// groupNodes groups the nodes by rule and key, the largest group first. It leaves out the pod's own node.
func groupNodes(nodes []solver.ExistingNodeFit, own string) []NodeGroup {
	out := []NodeGroup{}
	for _, n := range nodes {
		if n.Node == own {
			continue
		}
		i := slices.IndexFunc(out, func(g NodeGroup) bool { return g.Rule == n.Rule && g.Key == n.Key })
		if i < 0 {
			i = len(out)
			out = append(out, NodeGroup{Rule: n.Rule, Key: n.Key, Example: n.Node})
		}
		out[i].Count++
	}
	slices.SortStableFunc(out, func(a, b NodeGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// answer returns the explanation in one sentence.
func (e *PodExplanation) answer() string {
	switch e.State {
	case StateLaunching:
		return fmt.Sprintf("a new node of NodePool %s is planned for it, with %s", e.Launch.NodePool, simulate.FormatCount(len(e.Launch.Pods), "pod"))
	case StateExpected:
		return "it is expected on " + e.Node.String() + ", which has free capacity for it"
	case StateRunning:
		return "it runs on " + e.Node.String()
	}
	if len(e.NodePools) == 0 {
		return "it is unschedulable: no NodePool launches nodes for pods"
	}
	by := fmt.Sprintf("all %d NodePools reject it", len(e.NodePools))
	if len(e.NodePools) == 1 {
		by = "the only NodePool rejects it"
	}
	return "it is unschedulable: no existing node can hold it, and " + by
}

// String returns the node in words.
func (p *PodPlace) String() string {
	name := "node " + p.Name
	if p.Name == "" {
		name = "NodeClaim " + p.Claim
	}
	if p.InstanceType != "" {
		name += " (" + p.InstanceType + ", " + p.CapacityType + ", " + p.Zone + ")"
	}
	return name
}
