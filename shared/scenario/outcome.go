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

// Outcome is the output for a plan.
type Outcome struct {
	// Planner is the name and version of the planner.
	Planner  string `json:"planner"`
	Scenario string `json:"scenario"`
	// Pods is the number of pods to place.
	Pods          int       `json:"pods"`
	InstanceTypes int       `json:"instanceTypes"`
	NewNodes      []NewNode `json:"newNodes"`
	// ExistingNodes counts the pods placed on existing nodes, by node name, and ExistingPods lists
	// their names.
	ExistingNodes map[string]int      `json:"existingNodes"`
	ExistingPods  map[string][]string `json:"existingPods,omitempty"`
	// Unscheduled maps unplaced pods to the reasons.
	Unscheduled map[string]string `json:"unscheduled"`
	Summary     Summary           `json:"summary"`
}

// NewNode is a node to launch. Type, zone and capacity type are those of the cheapest offering that
// the launch would try, and Price is its price in US dollars an hour.
type NewNode struct {
	// Name is the name of the node if later rounds refer to it.
	Name         string  `json:"name,omitempty"`
	NodePool     string  `json:"nodePool"`
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
	// Options is the number of instance types that the launch may choose from, and OptionTypes are
	// their names, the cheapest first.
	Options     int      `json:"options"`
	OptionTypes []string `json:"optionTypes"`
	// Labels are the labels that the plan chose because the pool left them open.
	Labels map[string]string `json:"labels,omitempty"`
	// Requests is the sum for the pods and the daemons of the node.
	Requests corev1.ResourceList `json:"requests"`
	Pods     []string            `json:"pods"`
}

// Summary is the totals of the plan, and the cost of planning.
type Summary struct {
	NewNodes       int     `json:"newNodes"`
	Scheduled      int     `json:"scheduled"`
	Unscheduled    int     `json:"unscheduled"`
	DollarsPerHour float64 `json:"dollarsPerHour"`
	// LowerBoundDollarsPerHour is a lower bound for the cost of any plan; 0 if the planner has none.
	LowerBoundDollarsPerHour float64 `json:"lowerBoundDollarsPerHour"`
	Effort
	// TimedOut is true if the planner stopped before it had planned all pods.
	TimedOut bool `json:"timedOut"`
}

// Effort is the measured cost of planning. Setup is reading the scenario; solving starts with single
// pods and ends with the plan.
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

// Outcome returns the output for a result. The caller adds Planner and Effort.
func (s *Scenario) Outcome(pods []*corev1.Pod, result planning.Result) Outcome {
	names := make(Names, len(pods))
	for _, pod := range pods {
		names.Add(pod.Name)
	}
	out := Outcome{
		Scenario: s.Name, Pods: len(pods), InstanceTypes: s.types,
		NewNodes: []NewNode{}, ExistingNodes: map[string]int{}, ExistingPods: map[string][]string{}, Unscheduled: map[string]string{},
		Summary: Summary{NewNodes: len(result.Nodes), LowerBoundDollarsPerHour: result.BoundPerHour, TimedOut: result.Partial},
	}
	launches := sameLaunches{}
	for i := range result.Nodes {
		node := s.newNode(&result.Nodes[i], names, launches)
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

// sameLaunches are the nodes described so far, one for each launch, by the list of offerings that they share. A plan may have
// 20,000 nodes but only dozens of different launches.
type sameLaunches map[*planning.PricedOffering][]describedLaunch

// describedLaunch is a planned node, and the fields of its output that follow from its launch.
type describedLaunch struct {
	node *planning.PlannedNode
	out  NewNode
}

func (s *Scenario) newNode(n *planning.PlannedNode, names Names, launches sameLaunches) NewNode {
	for _, known := range launches[&n.Offerings[0]] {
		if launchspec.HaveSameLaunch(known.node, n) {
			return known.out.describeNode(n, s.NodePools, names)
		}
	}
	launch := describeLaunch(launchspec.Launchable(n, func(instanceType string) bool { return s.exotic[instanceType] }))
	launches[&n.Offerings[0]] = append(launches[&n.Offerings[0]], describedLaunch{n, launch})
	return launch.describeNode(n, s.NodePools, names)
}

// Describe returns the output for a planned node. options are the offerings that its launch would try,
// the cheapest first, and pools are those of the cluster.
func Describe(n *planning.PlannedNode, options []planning.PricedOffering, pools []karpenter.NodePool, names Names) NewNode {
	return describeLaunch(options).describeNode(n, pools, names)
}

// describeLaunch returns the fields that follow from the offerings that a launch would try.
func describeLaunch(options []planning.PricedOffering) NewNode {
	out := NewNode{OptionTypes: []string{}}
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

// describeNode returns the launch with the other fields of one node.
func (launch NewNode) describeNode(n *planning.PlannedNode, pools []karpenter.NodePool, names Names) NewNode {
	launch.NodePool, launch.Requests, launch.Labels, launch.Pods = n.NodePool, n.Requests, chosen(n, pools), make([]string, 0, len(n.Pods))
	for _, pod := range n.Pods {
		launch.Pods = append(launch.Pods, names.Of(pod.Namespace, pod.Pod.Name))
	}
	return launch
}

// chosen returns the custom labels of the node that its pool does not set to one value.
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

// Reason returns in one line why pods are not placed.
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

// Names returns pod names in the output: with the namespace if two pods have the same name. Values are
// true for such names.
type Names map[string]bool

// Add adds the name of one pod. Call it once for each pod.
func (n Names) Add(name string) {
	_, twice := n[name]
	n[name] = twice
}

// Of returns the name of the pod in the output.
func (n Names) Of(namespace, name string) string {
	if n[name] {
		return namespace + "/" + name
	}
	return name
}
