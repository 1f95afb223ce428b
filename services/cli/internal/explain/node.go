package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Actions of disruption on a node.
const (
	ActionKeep   = "keep"
	ActionRemove = "remove"
	ActionReboot = "reboot"
)

// RuleNotManaged is the rule of nodes without a NodeClaim.
const RuleNotManaged = "not-managed"

// NodeExplanation explains why a node stays or goes, and why it has its instance type.
type NodeExplanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Node       string `json:"node"`
	Claim      string `json:"nodeClaim,omitempty"`
	NodePool   string `json:"nodePool,omitempty"`
	// At is the time of the decision, and State that of the snapshot: disruption evaluates a snapshot again
	// while it is current.
	At           time.Time `json:"at"`
	State        time.Time `json:"state"`
	InstanceType string    `json:"instanceType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	PricePerHour float64   `json:"pricePerHour,omitempty"`
	Pods         int       `json:"pods"`
	// Action is keep, remove or reboot.
	Action string `json:"action"`
	Answer string `json:"answer"`
	// Method, Reason, Others, Moves and Replacements describe the command that removes or reboots it.
	Method       string              `json:"method,omitempty"`
	Reason       string              `json:"reason,omitempty"`
	Others       []string            `json:"others,omitempty"`
	Moves        map[string][]string `json:"moves,omitempty"`
	Replacements []NodeReplacement   `json:"replacements,omitempty"`
	SavedPerHour float64             `json:"savedPerHour,omitempty"`
	// Rule and Detail are why it stays, or why it goes; Change is what would have to change.
	Rule   string `json:"rule,omitempty"`
	Detail string `json:"detail"`
	Change string `json:"change,omitempty"`
	// Proposal is the phase of the proposal that is written on the NodeClaim: proposed or confirmed.
	Proposal string `json:"proposal,omitempty"`
	// Reproduction compares the confirmed plan of its proposal with the recorded one, if there is one.
	Reproduction *Reproduction `json:"reproduction,omitempty"`
	// Audited compares the last decision about the node in the audit log, if one is given.
	Audited *AuditedDecision `json:"audited,omitempty"`
	// Launch is why the node has its instance type, and LaunchReproduction compares that plan.
	Launch             *Launch       `json:"launch,omitempty"`
	LaunchReproduction *Reproduction `json:"launchReproduction,omitempty"`
	Notes              []string      `json:"notes"`
}

// NodeReplacement is a node that is launched first.
type NodeReplacement struct {
	NodePool string        `json:"nodePool"`
	Cheapest OfferingPrice `json:"cheapest"`
	Pods     int           `json:"pods"`
}

// FindNode returns the index of a node, by the name of the node or of its NodeClaim. The error is
// fault.Missing if the snapshot has none.
func FindNode(s *planning.Snapshot, name string) (int, error) {
	at := slices.IndexFunc(s.Nodes, func(n planning.Node) bool { return n.Name == name })
	if at < 0 {
		at = slices.IndexFunc(s.Nodes, func(n planning.Node) bool { return n.Claim == name && name != "" })
	}
	if at < 0 {
		return at, fault.F("explaining the node", fault.Missing, "node %s not found", name).WithHint("give the name of a node or NodeClaim of the snapshot or scenario%s", someNames(s))
	}
	return at, nil
}

// someNames returns names of nodes for a hint.
func someNames(s *planning.Snapshot) string {
	const namesMax = 3
	var names []string
	for i := range s.Nodes[:min(namesMax, len(s.Nodes))] {
		names = append(names, s.Nodes[i].Name)
	}
	if len(names) == 0 {
		return ", which has no nodes"
	}
	return ", such as " + strings.Join(names, ", ")
}

// ExplainNode evaluates disruption on the snapshot as of a time, and explains the decision about one node.
func ExplainNode(s planning.Snapshot, stock instancetypes.InstanceTypes, asOf time.Time, name string) (NodeExplanation, error) {
	at, err := FindNode(&s, name)
	if err != nil {
		return NodeExplanation{}, err
	}
	taken := s.TakenAt
	s.TakenAt = asOf
	out := newNode(&s, at, disruption.Evaluate(s, stock, disruption.Options{}), stock)
	out.State = taken.UTC()
	return out, nil
}

func newNode(s *planning.Snapshot, at int, found disruption.Findings, stock instancetypes.InstanceTypes) NodeExplanation {
	n := &s.Nodes[at]
	out := NodeExplanation{
		APIVersion: apiVersion, Kind: "NodeExplanation", Node: n.Name, Claim: n.Claim, NodePool: n.NodePool, At: s.TakenAt.UTC(), Action: ActionKeep,
		InstanceType: n.Labels[corev1.LabelInstanceTypeStable], Zone: n.Labels[corev1.LabelTopologyZone], CapacityType: n.Labels[karpenter.CapacityTypeLabelKey],
		PricePerHour: n.PricePerHour, Notes: []string{},
	}
	for _, class := range n.Pods {
		out.Pods += len(class.Pods)
	}
	if n.Proposal != nil {
		out.Proposal = "proposed"
		if !n.Proposal.ConfirmedAt.IsZero() {
			out.Proposal = "confirmed"
		}
	}
	for i := range found.Commands {
		if slices.Contains(found.Commands[i].Nodes, at) {
			out.setCommand(s, at, &found.Commands[i], stock)
			return out
		}
	}
	out.Rule, out.Detail = RuleNotManaged, "the node belongs to no NodePool"
	for _, k := range found.Kept {
		if k.Index == at {
			out.Rule, out.Detail = k.Rule, k.Detail
		}
	}
	out.Change = adviceOf(out.Rule)
	out.Answer = "node " + n.Name + " is kept (" + out.Rule + ")"
	return out
}

// setCommand describes the command that removes or reboots the node.
func (e *NodeExplanation) setCommand(s *planning.Snapshot, at int, c *disruption.Command, stock instancetypes.InstanceTypes) {
	e.Action, e.Method, e.Reason, e.Detail, e.SavedPerHour = ActionRemove, string(c.Method), string(c.Reason), c.Why, c.SavedPerHour
	if c.Reboot {
		e.Action, e.Answer = ActionReboot, fmt.Sprintf("node %s would be rebooted by %s", e.Node, c.Method)
		return
	}
	for _, i := range c.Nodes {
		if i != at {
			e.Others = append(e.Others, s.Nodes[i].Name)
		}
	}
	e.Moves = map[string][]string{}
	for _, n := range c.Result.Nominations {
		on := n.Node
		if on == "" {
			on = n.Claim
		}
		e.Moves[on] = append(e.Moves[on], n.Namespace+"/"+n.Pod.Name)
	}
	for i := range c.Result.Nodes {
		r := &c.Result.Nodes[i]
		offerings := launchspec.Launchable(r, exoticTypes(stock, r.NodePool, r.NodeClass))
		if len(offerings) == 0 {
			offerings = r.Offerings
		}
		e.Replacements = append(e.Replacements, NodeReplacement{NodePool: r.NodePool, Cheapest: newOffering(offerings[0]), Pods: len(r.Pods)})
	}
	e.Answer = fmt.Sprintf("node %s would be removed by %s, with %d others", e.Node, c.Method, len(e.Others))
}
