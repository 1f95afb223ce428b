// Package report formats results as text and as JSON.
//
// The JSON form is a contract, tested with golden files: fields are added, never renamed or
// removed. Lists keep the order of the plan; an empty list is [], never null.
package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Plan is the output of `joist plan -o json`.
type Plan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Region     string `json:"region"`
	// PricesOf is the date of the prices, as YYYY-MM-DD.
	PricesOf string `json:"pricesOf"`
	Nodes    []Node `json:"nodes"`
	// PricePerHour is the price of all nodes, in US dollars.
	PricePerHour float64 `json:"pricePerHour"`
	// BoundPerHour is a lower bound of the price of any plan for the same pods.
	BoundPerHour float64 `json:"boundPerHour"`
	// Partial reports that the work budget was used up before all pods were considered.
	Partial bool `json:"partial"`
	// Fitting are pods that fit on nodes of the manifests.
	Fitting     []Fitting  `json:"fitting"`
	Unplaced    []Unplaced `json:"unplaced"`
	Assumptions []string   `json:"assumptions"`
	Warnings    []string   `json:"warnings"`
}

// Node is one node to launch. EC2 chooses among Offerings offerings; the type, zone and price
// are those of the cheapest.
type Node struct {
	NodePool     string  `json:"nodePool"`
	NodeClass    string  `json:"nodeClass"`
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
	Offerings    int     `json:"offerings"`
	// Requests is the sum of the requests of the node's pods and daemons.
	Requests corev1.ResourceList `json:"requests"`
	Pods     []Pod               `json:"pods"`
}

// Pod is the name of a pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Devices are the devices planned for the pod, as driver/pool/device.
	Devices []string `json:"devices,omitempty"`
}

// Fitting is a pod and the existing node that it fits on.
type Fitting struct {
	Pod
	Node string `json:"node"`
}

// Unplaced are equal pods that are unschedulable.
type Unplaced struct {
	Namespace string               `json:"namespace"`
	Pods      []string             `json:"pods"`
	Reasons   []planning.Rejection `json:"reasons"`
}

// HasChanges reports whether the plan launches nodes or has pods to schedule.
func (p Plan) HasChanges() bool { return len(p.Nodes)+len(p.Unplaced) > 0 }

// NewPlan converts the result of planning.
func NewPlan(a simulate.PlanResult, warnings []string) Plan {
	out := Plan{
		APIVersion: "cli.joist.sh/v1", Kind: "Plan",
		Region: a.Catalogue.Region, PricesOf: a.Catalogue.AsOf.Format("2006-01-02"), PricePerHour: a.Built.Plan.PricePerHour,
		BoundPerHour: a.Built.Plan.BoundPerHour, Partial: a.Built.Plan.Partial,
		Nodes: []Node{}, Fitting: []Fitting{}, Unplaced: []Unplaced{},
		Assumptions: append([]string{}, a.Assumptions...), Warnings: append([]string{}, warnings...),
	}
	for _, w := range a.Built.Plan.Warnings {
		out.Warnings = append(out.Warnings, w.String())
	}
	pods := map[string][]Pod{}
	for _, n := range a.Built.Plan.Nominations {
		pod := Pod{n.Namespace, n.Pod.Name, n.Devices}
		if n.Node != "" {
			out.Fitting = append(out.Fitting, Fitting{pod, n.Node})
			continue
		}
		pods[n.Claim] = append(pods[n.Claim], pod)
	}
	for i, planned := range a.Built.Plan.Intents {
		intent := a.Built.Intents[i]
		cheapest, offerings := cheapestOffering(intent)
		for _, claim := range planned.Claims {
			out.Nodes = append(out.Nodes, Node{
				NodePool: intent.NodePool, NodeClass: intent.NodeClass,
				InstanceType: cheapest.instanceType, Zone: cheapest.zone, CapacityType: intent.Fleet.CapacityType,
				PricePerHour: claim.PricePerHour, Offerings: offerings,
				Requests: claim.Object.Spec.Resources.Requests, Pods: pods[claim.Object.Name],
			})
		}
	}
	for _, u := range a.Built.Plan.Unplaced {
		one := Unplaced{Namespace: u.Namespace, Reasons: slices.Clone(u.Rejections)}
		for _, pod := range u.Pods {
			one.Pods = append(one.Pods, pod.Name)
		}
		out.Unplaced = append(out.Unplaced, one)
	}
	return out
}

type offering struct{ instanceType, zone string }

// cheapestOffering returns the offering with the price of the plan, the first of equals, and
// the number of offerings.
func cheapestOffering(intent launchspec.Intent) (best offering, count int) {
	least := 0.0
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			price := intent.Prices[o.InstanceType+"/"+o.Zone]
			if count == 0 || price < least {
				best, least = offering{o.InstanceType, o.Zone}, price
			}
			count++
		}
	}
	return best, count
}
