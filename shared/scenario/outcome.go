package scenario

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
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
func (s *Scenario) Outcome(pods []*corev1.Pod, result planning.Result) Outcome {
	names := Names{}
	for _, pod := range pods {
		names.Add(pod.Name)
	}
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
		out.ExistingPods[node] = append(out.ExistingPods[node], names.Of(n.Namespace, n.Pod.Name))
		out.Summary.Scheduled++
	}
	for _, u := range result.Unplaced {
		why := Reason(u.Rejections)
		for _, pod := range u.Pods {
			out.Unscheduled[names.Of(u.Namespace, pod.Name)] = why
		}
		out.Summary.Unscheduled += len(u.Pods)
	}
	return out
}

func (s *Scenario) newNode(n *planning.PlannedNode, names Names) NewNode {
	options := launchspec.Launchable(n, func(instanceType string) bool { return s.exotic[instanceType] })
	return Describe(n, options, s.NodePools, names)
}

// Describe tells a node of a plan. Options are the offerings that its launch would try,
// cheapest first, and pools are those of the cluster.
func Describe(n *planning.PlannedNode, options []planning.PricedOffering, pools []karpenter.NodePool, names Names) NewNode {
	out := NewNode{NodePool: n.NodePool, Requests: n.Requests, Labels: chosen(n, pools), Pods: []string{}, OptionTypes: []string{}}
	for _, pod := range n.Pods {
		out.Pods = append(out.Pods, names.Of(pod.Namespace, pod.Pod.Name))
	}
	for _, o := range options {
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

// chosen are the labels of the node that neither its machine nor the words of its
// pool decide.
func chosen(n *planning.PlannedNode, pools []karpenter.NodePool) map[string]string {
	out := n.Requirements.Labels()
	maps.DeleteFunc(out, func(key, _ string) bool { return karpenter.IsWellKnownLabel(key) })
	for i := range pools {
		if pools[i].Name == n.NodePool {
			maps.DeleteFunc(out, func(key, _ string) bool { _, said := pools[i].Spec.Template.Labels[key]; return said })
		}
	}
	return out
}

// Reason says in one line why pods have no place.
func Reason(rejections []planning.Rejection) string {
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

// Names calls pods by their names, and those whose name two namespaces have by
// both.
type Names map[string]bool

// Add hears of a pod of that name. Each is to be told once.
func (n Names) Add(name string) {
	_, twice := n[name]
	n[name] = twice
}

// Of is what the pod is called.
func (n Names) Of(namespace, name string) string {
	if n[name] {
		return namespace + "/" + name
	}
	return name
}
