package scenario

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Outcome is a plan as it is written down.
type Outcome struct {
	// Planner is who planned, and its version.
	Planner  string `json:"planner"`
	Scenario string `json:"scenario"`
	// Pods is how many were to be placed.
	Pods          int       `json:"pods"`
	InstanceTypes int       `json:"instanceTypes"`
	NewNodes      []NewNode `json:"newNodes"`
	// ExistingNodes counts the pods that go to nodes which exist, by the node's
	// name, and ExistingPods names them.
	ExistingNodes map[string]int      `json:"existingNodes"`
	ExistingPods  map[string][]string `json:"existingPods,omitempty"`
	// Unscheduled are the pods without a place, and why.
	Unscheduled map[string]string `json:"unscheduled"`
	Summary     Summary           `json:"summary"`
}

// NewNode is a node to launch. Type, zone and capacity type are those of the
// cheapest offering that the launch would try, and Price is what it costs in US
// dollars an hour.
type NewNode struct {
	// Name is what the node is called from then on, where anything comes after.
	Name         string  `json:"name,omitempty"`
	NodePool     string  `json:"nodePool"`
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
	// Options is how many instance types the launch could still choose from, and
	// OptionTypes are their names, cheapest first.
	Options     int      `json:"options"`
	OptionTypes []string `json:"optionTypes"`
	// Labels are those that the plan decided on where the pool left a choice.
	Labels map[string]string `json:"labels,omitempty"`
	// Requests is what the pods and the daemons of the node ask for together.
	Requests corev1.ResourceList `json:"requests"`
	Pods     []string            `json:"pods"`
}

// Summary counts what the plan came to, and what planning cost.
type Summary struct {
	NewNodes       int     `json:"newNodes"`
	Scheduled      int     `json:"scheduled"`
	Unscheduled    int     `json:"unscheduled"`
	DollarsPerHour float64 `json:"dollarsPerHour"`
	// LowerBoundDollarsPerHour is what no plan can cost less than; 0 when the
	// planner does not know.
	LowerBoundDollarsPerHour float64 `json:"lowerBoundDollarsPerHour"`
	Effort
	// TimedOut says that the planner gave up before it had looked at all pods.
	TimedOut bool `json:"timedOut"`
}

// Effort is what planning took, as whoever ran it measured. Setup is reading;
// solving begins with single pods in hand and ends with the plan.
type Effort struct {
	SetupWallS float64 `json:"setupWallS"`
	SolveWallS float64 `json:"solveWallS"`
	// SolveUserS and SolveSysS are CPU seconds of the whole process.
	SolveUserS   float64 `json:"solveUserS"`
	SolveSysS    float64 `json:"solveSysS"`
	SolveMallocs uint64  `json:"solveMallocs"`
	SolveAllocMB float64 `json:"solveAllocMB"`
	PeakRSSMB    float64 `json:"peakRSSMB"`
}

// Outcome describes a result for the scenario. Who planned, and at what effort,
// is for the caller to add.
func (s *Scenario) Outcome(pods []*corev1.Pod, result scheduling.Result) Outcome {
	names := namesOf(pods)
	out := Outcome{
		Scenario: s.Name, Pods: len(pods), InstanceTypes: s.types,
		NewNodes: []NewNode{}, ExistingNodes: map[string]int{}, ExistingPods: map[string][]string{}, Unscheduled: map[string]string{},
		Summary: Summary{NewNodes: len(result.Nodes), LowerBoundDollarsPerHour: result.BoundPerHour, TimedOut: result.Partial},
	}
	for i := range result.Nodes {
		node := s.newNode(&result.Nodes[i], names)
		out.NewNodes = append(out.NewNodes, node)
		out.Summary.Scheduled += len(node.Pods)
		out.Summary.DollarsPerHour += node.Price
	}
	for _, n := range result.Nominations {
		node := cmp.Or(n.Node, n.Claim)
		out.ExistingNodes[node]++
		out.ExistingPods[node] = append(out.ExistingPods[node], names.of(n.Namespace, n.Pod.Name))
		out.Summary.Scheduled++
	}
	for _, u := range result.Unplaced {
		why := Reason(u.Rejections)
		for _, pod := range u.Pods {
			out.Unscheduled[names.of(u.Namespace, pod.Name)] = why
		}
		out.Summary.Unscheduled += len(u.Pods)
	}
	return out
}

func (s *Scenario) newNode(n *scheduling.PlannedNode, names names) NewNode {
	out := NewNode{NodePool: n.NodePool, Requests: n.Requests, Labels: s.chosen(n), Pods: []string{}, OptionTypes: []string{}}
	for _, pod := range n.Pods {
		out.Pods = append(out.Pods, names.of(pod.Namespace, pod.Pod.Name))
	}
	for _, o := range s.launchable(n) {
		if len(out.OptionTypes) == 0 {
			out.InstanceType, out.Zone, out.CapacityType, out.Price = o.InstanceType, o.Zone, o.CapacityType, o.PricePerHour
		}
		if !slices.Contains(out.OptionTypes, o.InstanceType) {
			out.OptionTypes = append(out.OptionTypes, o.InstanceType)
		}
	}
	out.Options = len(out.OptionTypes)
	return out
}

// launchable are the offerings that a launch of the node would try.
func (s *Scenario) launchable(n *scheduling.PlannedNode) []scheduling.Option {
	return launchspec.Launchable(n, func(instanceType string) bool { return s.exotic[instanceType] })
}

// chosen are the labels of the node that neither its machine nor the words of its
// pool decide.
func (s *Scenario) chosen(n *scheduling.PlannedNode) map[string]string {
	out := n.Requirements.Labels()
	maps.DeleteFunc(out, func(key, _ string) bool { return karpenter.WellKnownLabel(key) })
	for i := range s.NodePools {
		if s.NodePools[i].Name == n.NodePool {
			maps.DeleteFunc(out, func(key, _ string) bool { _, said := s.NodePools[i].Spec.Template.Labels[key]; return said })
		}
	}
	return out
}

// Reason says in one line why pods have no place.
func Reason(rejections []scheduling.Rejection) string {
	var parts []string
	for _, r := range rejections {
		text := r.Rule
		if r.Detail != "" {
			text += ": " + r.Detail
		}
		if r.NodePool != "" {
			text = "NodePool " + r.NodePool + ": " + text
		}
		parts = append(parts, text)
	}
	return cmp.Or(strings.Join(parts, "; "), "the planner gives no reason")
}

// names calls pods by their names, and those whose name two namespaces have by
// both.
type names map[string]bool

func namesOf(pods []*corev1.Pod) names {
	out := names{}
	for _, pod := range pods {
		_, twice := out[pod.Name]
		out[pod.Name] = twice
	}
	return out
}

func (n names) of(namespace, name string) string {
	if n[name] {
		return namespace + "/" + name
	}
	return name
}
