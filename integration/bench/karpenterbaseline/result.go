package karpenterbaseline

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// Result is a plan in the benchmark's format.
type Result struct {
	Planner       string              `json:"planner"`
	Scenario      string              `json:"scenario"`
	Pods          int                 `json:"pods"`
	InstanceTypes int                 `json:"instanceTypes"`
	NewNodes      []NewNode           `json:"newNodes"`
	ExistingNodes map[string]int      `json:"existingNodes"`
	ExistingPods  map[string][]string `json:"existingPods,omitempty"`
	Unscheduled   map[string]string   `json:"unscheduled"`
	Summary       Summary             `json:"summary"`
}

// NewNode is a node to launch.
type NewNode struct {
	// Name is the node's name in a consolidation.
	Name         string `json:"name,omitempty"`
	NodePool     string `json:"nodePool"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// Price is in US dollars per hour.
	Price       float64             `json:"price"`
	Options     int                 `json:"options"`
	OptionTypes []string            `json:"optionTypes"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Requests    corev1.ResourceList `json:"requests"`
	Pods        []string            `json:"pods"`
}

// Summary has the plan's totals and the effort of planning.
type Summary struct {
	NewNodes       int     `json:"newNodes"`
	Scheduled      int     `json:"scheduled"`
	Unscheduled    int     `json:"unscheduled"`
	DollarsPerHour float64 `json:"dollarsPerHour"`
	Effort
}

// planner is the planner's name, with the module's version.
const planner = "karpenter v1.15.0"

func (r *run) result(ctx context.Context, from scheduling.Results, effort Effort) (*Result, error) {
	out := &Result{
		Planner: planner, Scenario: r.scenario.Name, Pods: len(r.scenario.Pods), InstanceTypes: len(r.types),
		NewNodes: []NewNode{}, ExistingNodes: map[string]int{}, ExistingPods: map[string][]string{}, Unscheduled: map[string]string{},
	}
	for _, pod := range r.scenario.Pods {
		out.Unscheduled[nameOf(pod)] = "not reached before the time limit"
	}
	for _, claim := range from.NewNodeClaims {
		node, err := r.launch(ctx, claim)
		if err != nil {
			return nil, err
		}
		out.NewNodes = append(out.NewNodes, node)
		out.Summary.DollarsPerHour += node.Price
		out.place(node.Pods)
	}
	for _, node := range from.ExistingNodes {
		for _, pod := range node.Pods {
			out.ExistingNodes[node.Name()]++
			out.ExistingPods[node.Name()] = append(out.ExistingPods[node.Name()], nameOf(pod))
		}
		out.place(out.ExistingPods[node.Name()])
	}
	for _, errs := range []map[*corev1.Pod]error{from.PodErrors, r.refused} {
		for pod, err := range errs {
			out.Unscheduled[nameOf(pod)] = err.Error()
		}
	}
	out.Summary.NewNodes, out.Summary.Unscheduled, out.Summary.Effort = len(out.NewNodes), len(out.Unscheduled), effort
	return out, nil
}

func (r *Result) place(names []string) {
	for _, name := range names {
		delete(r.Unscheduled, name)
	}
	r.Summary.Scheduled += len(names)
}

// nameOf returns the pod's name, with its namespace unless that is the default.
func nameOf(pod *corev1.Pod) string {
	if pod.Namespace == metav1.NamespaceDefault {
		return pod.Name
	}
	return pod.Namespace + "/" + pod.Name
}
