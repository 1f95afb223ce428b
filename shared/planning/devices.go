package planning

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DeviceState is the cluster's state of Dynamic Resource Allocation. It is empty if the setting
// PlanDRARequests is off. The objects have only the fields that planning reads.
type DeviceState struct {
	Classes []resourcev1.DeviceClass `json:"classes,omitempty"`
	// Slices include the owner references to nodes.
	Slices []resourcev1.ResourceSlice `json:"slices,omitempty"`
	// Claims have the requests and constraints, the allocation and the pods that reserved it.
	Claims []resourcev1.ResourceClaim `json:"claims,omitempty"`
}

// PodClaim is what one ResourceClaim of a pod requests.
type PodClaim struct {
	// Name is the name of the ResourceClaim in the pod's namespace. It is empty if the claim was
	// generated for one pod and restricts the pod's node in no other way than its requests: its name
	// would put equal pods into different classes. PodRef.Claims has all names.
	Name        string                        `json:"name,omitempty"`
	Requests    []resourcev1.DeviceRequest    `json:"requests,omitempty"`
	Constraints []resourcev1.DeviceConstraint `json:"constraints,omitempty"`
	// Problem is why the claim cannot be planned yet, for example because it does not exist.
	Problem string `json:"problem,omitempty"`
}

// ClaimAllocation is what a plan allocates to one ResourceClaim.
type ClaimAllocation struct {
	Namespace string
	Claim     string
	// Node is the name of an existing node or NodeClaim; empty for the planned node with the index
	// PlannedNode.
	Node        string
	PlannedNode int
	// Devices are the devices for each instance type that the node may have.
	Devices []AllocatedDevice
}

// AllocatedDevice is a device that a plan allocates to a request.
type AllocatedDevice struct {
	InstanceType string
	// Request is the name of the request, or of the request and its alternative.
	Request string
	Driver  string
	Pool    string
	Device  string
	// Template is true for a device that the node will publish.
	Template bool
	// ConsumedCapacity is what the request consumes of a device that several requests share.
	ConsumedCapacity map[resourcev1.QualifiedName]resource.Quantity
}
