package planning

import resourcev1 "k8s.io/api/resource/v1"

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
