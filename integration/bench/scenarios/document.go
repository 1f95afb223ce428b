package scenarios

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Scenario is the document that planners read.
type Scenario struct {
	Name              string               `json:"name"`
	Seed              uint64               `json:"seed"`
	InstanceTypesFile string               `json:"instanceTypesFile"`
	NodePools         []karpenter.NodePool `json:"nodePools"`
	DaemonSetPods     []corev1.Pod         `json:"daemonSetPods"`
	PodGroups         []PodGroup           `json:"podGroups,omitempty"`
	Pods              []corev1.Pod         `json:"pods,omitempty"`
	Nodes             []Node               `json:"nodes,omitempty"`
}

// PodGroup is count separate pods of one template.
type PodGroup struct {
	Count    int        `json:"count"`
	Template corev1.Pod `json:"template"`
}

// Node is an existing node with its pods.
type Node struct {
	Name         string       `json:"name"`
	NodePool     string       `json:"nodePool"`
	InstanceType string       `json:"instanceType"`
	Zone         string       `json:"zone"`
	CapacityType string       `json:"capacityType"`
	Pods         []corev1.Pod `json:"pods"`
}

// Type is an instance type of the scenario. Allocatable is capacity without
// overhead.
type Type struct {
	Name      string              `json:"name"`
	Arch      string              `json:"arch"`
	OS        []string            `json:"os"`
	Capacity  corev1.ResourceList `json:"capacity"`
	Overhead  corev1.ResourceList `json:"overhead"`
	Labels    map[string]string   `json:"labels"`
	Offerings []Offering          `json:"offerings"`
}

// Offering is one way to buy a type; the price is in US dollars per hour.
type Offering struct {
	Zone         string  `json:"zone"`
	ZoneID       string  `json:"zoneID"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
	Available    bool    `json:"available"`
}
