package scenario

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Maximum sizes of scenarios. They protect the machine from absurd files, and are far above what can
// be planned.
const (
	fileMax      = 256 << 20 // bytes, unpacked
	podsMax      = 200_000
	typesMax     = 10_000
	offeringsMax = 1_000 // of one type
	poolsMax     = 1_000
	nodesMax     = 50_000
)

// document is the file's content. Fields are pointers if a missing value must be distinguished from
// zero.
type document struct {
	Name string `json:"name"`
	// Seed is the random seed of the generator that wrote the scenario.
	Seed              json.RawMessage       `json:"seed,omitempty"`
	InstanceTypes     []instanceType        `json:"instanceTypes,omitempty"`
	InstanceTypesFile string                `json:"instanceTypesFile,omitempty"`
	NodePools         *[]karpenter.NodePool `json:"nodePools"`
	DaemonSetPods     []corev1.Pod          `json:"daemonSetPods,omitempty"`
	// PodGroups and Pods are pointers because the decoder copies a list each time that it grows, and a pod has 1,240 bytes.
	PodGroups []*podGroup   `json:"podGroups,omitempty"`
	Pods      []*corev1.Pod `json:"pods,omitempty"`
	Nodes     []node        `json:"nodes,omitempty"`
	// Devices plans ResourceClaims. Without it, pods with claims are rejected.
	Devices *devices `json:"devices,omitempty"`
}

// devices are the objects of Dynamic Resource Allocation.
type devices struct {
	DeviceClasses          []resourcev1.DeviceClass           `json:"deviceClasses,omitempty"`
	ResourceSlices         []resourcev1.ResourceSlice         `json:"resourceSlices,omitempty"`
	ResourceClaims         []resourcev1.ResourceClaim         `json:"resourceClaims,omitempty"`
	ResourceClaimTemplates []resourcev1.ResourceClaimTemplate `json:"resourceClaimTemplates,omitempty"`
}

// objects returns all objects.
func (d *devices) objects() []cluster.Object {
	if d == nil {
		return nil
	}
	var out []cluster.Object
	for i := range d.DeviceClasses {
		out = append(out, &d.DeviceClasses[i])
	}
	for i := range d.ResourceSlices {
		out = append(out, &d.ResourceSlices[i])
	}
	for i := range d.ResourceClaims {
		out = append(out, &d.ResourceClaims[i])
	}
	for i := range d.ResourceClaimTemplates {
		out = append(out, &d.ResourceClaimTemplates[i])
	}
	return out
}

type podGroup struct {
	Count    int        `json:"count"`
	Template corev1.Pod `json:"template"`
}

type instanceType struct {
	Name      string              `json:"name"`
	Arch      string              `json:"arch"`
	OS        []string            `json:"os"`
	Capacity  corev1.ResourceList `json:"capacity"`
	Overhead  corev1.ResourceList `json:"overhead,omitempty"`
	Labels    map[string]string   `json:"labels,omitempty"`
	Offerings []offering          `json:"offerings"`
	// DeviceTemplates are the devices that drivers publish on a new node, and DeviceBindings the
	// attributes that some of them share.
	DeviceTemplates []catalog.DeviceTemplate `json:"deviceTemplates,omitempty"`
	DeviceBindings  []catalog.DeviceBinding  `json:"deviceBindings,omitempty"`
}

type offering struct {
	Zone         string   `json:"zone"`
	ZoneID       string   `json:"zoneID,omitempty"`
	CapacityType string   `json:"capacityType"`
	Price        *float64 `json:"price"`
	Available    *bool    `json:"available"`
}

type node struct {
	Name         string       `json:"name"`
	NodePool     string       `json:"nodePool,omitempty"`
	InstanceType string       `json:"instanceType"`
	Zone         string       `json:"zone"`
	CapacityType string       `json:"capacityType"`
	Pods         []corev1.Pod `json:"pods,omitempty"`
}
