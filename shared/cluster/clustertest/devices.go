package clustertest

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// deviceKinds round-trips the kinds of Dynamic Resource Allocation. A driver writes slices, and
// kube-scheduler the status of claims.
func deviceKinds(s *suite) {
	class := create(s, &resourcev1.DeviceClass{ObjectMeta: s.global("gpu"), Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}},
	}})
	if got := get[*resourcev1.DeviceClass](s, cluster.DeviceClasses, cluster.KeyOf(class)); len(got.Spec.Selectors) != 1 {
		s.Errorf("selectors of the class = %+v", got.Spec.Selectors)
	}
	slice := create(s, &resourcev1.ResourceSlice{ObjectMeta: s.global("a"), Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: new("a"), Pool: resourcev1.ResourcePool{Name: "a", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{
			Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: new("gpu")}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8Gi")}},
		}},
	}})
	read := get[*resourcev1.ResourceSlice](s, cluster.ResourceSlices, cluster.KeyOf(slice))
	if memory := read.Spec.Devices[0].Capacity["memory"].Value; memory.String() != "8Gi" || *read.Spec.Devices[0].Attributes["type"].StringValue != "gpu" {
		s.Errorf("devices of the slice = %+v", read.Spec.Devices)
	}
	claim := create(s, &resourcev1.ResourceClaim{ObjectMeta: s.meta("a"), Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: class.Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		}}},
	}}})
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.example.com", Pool: "a", Device: "gpu-0"}},
	}}
	updateStatus(s, claim)
	got := get[*resourcev1.ResourceClaim](s, cluster.ResourceClaims, s.key("a"))
	if got.Status.Allocation == nil || got.Status.Allocation.Devices.Results[0].Device != "gpu-0" || got.Spec.Devices.Requests[0].Exactly.Count != 1 {
		s.Errorf("the claim = %+v", got)
	}
}
