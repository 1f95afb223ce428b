package planningtest

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// CheckDevices returns every mistake in the allocations of a result, as the plan validator finds them. Pods that run
// on a node that is being removed are moved.
func CheckDevices(batch planning.Batch, stock instancetypes.InstanceTypes, result planning.Result) error {
	s := newDeviceScenario(&batch, stock)
	var plan []planvalidator.DeviceAllocation
	for _, a := range result.Allocations {
		plan = append(plan, newAllocationDocument(&a, &batch, &result))
	}
	var errs []error
	for _, v := range planvalidator.CheckDevices(s, plan) {
		errs = append(errs, v)
	}
	return errors.Join(errs...)
}

func newDeviceScenario(batch *planning.Batch, stock instancetypes.InstanceTypes) *planvalidator.DeviceScenario {
	out := &planvalidator.DeviceScenario{Templates: map[string][]resourcev1.ResourceSliceSpec{}, Requests: map[string][]resourcev1.DeviceRequest{}}
	for _, types := range stock.ByNodeClass {
		for _, t := range types {
			for _, template := range t.DeviceTemplates {
				out.Templates[t.Name] = append(out.Templates[t.Name], resourcev1.ResourceSliceSpec{
					Driver: template.Driver, Pool: resourcev1.ResourcePool{Name: template.Pool}, Devices: template.Devices, SharedCounters: template.SharedCounters,
				})
			}
		}
	}
	for _, s := range batch.Snapshot.Devices.Slices {
		if len(s.OwnerReferences) == 0 || slices.ContainsFunc(batch.Snapshot.Nodes, func(n planning.Node) bool {
			return n.Name == s.OwnerReferences[0].Name && (n.Claim == "" || n.Initialized) && !n.MarkedForDeletion
		}) {
			out.Slices = append(out.Slices, s)
		}
	}
	moved := map[string]bool{}
	for _, class := range batch.Pending {
		for _, pod := range class.Pods {
			moved[pod.UID] = pod.Node != ""
			for i, name := range pod.Claims[:min(len(pod.Claims), len(class.Spec.Claims))] {
				out.Requests[class.Spec.Namespace+"/"+name] = class.Spec.Claims[i].Requests
			}
		}
	}
	for i := range batch.Snapshot.Nodes {
		n := &batch.Snapshot.Nodes[i]
		for j := range n.Pods {
			for _, pod := range n.Pods[j].ReschedulablePods() {
				moved[pod.UID] = moved[pod.UID] || n.MarkedForDeletion
			}
		}
	}
	for _, c := range batch.Snapshot.Devices.Claims {
		stays := func(ref resourcev1.ResourceClaimConsumerReference) bool { return !moved[string(ref.UID)] }
		if len(c.Status.ReservedFor) == 0 || slices.ContainsFunc(c.Status.ReservedFor, stays) {
			out.Kept = append(out.Kept, c)
		}
	}
	return out
}

func newAllocationDocument(a *planning.ClaimAllocation, batch *planning.Batch, result *planning.Result) planvalidator.DeviceAllocation {
	out := planvalidator.DeviceAllocation{Claim: a.Namespace + "/" + a.Claim, Node: a.Node, Devices: map[string][]planvalidator.UsedDevice{}}
	if a.Node == "" {
		out.Node = fmt.Sprint("new node ", a.PlannedNode)
		out.Zone = result.Nodes[a.PlannedNode].Offerings[0].Zone
	}
	for _, n := range batch.Snapshot.Nodes {
		if n.Name == a.Node {
			out.Zone = n.Labels[corev1.LabelTopologyZone]
		}
	}
	for _, d := range a.Devices {
		out.Devices[d.InstanceType] = append(out.Devices[d.InstanceType], planvalidator.UsedDevice{
			Request: d.Request, Driver: d.Driver, Pool: d.Pool, Device: d.Device, Template: d.Template, Capacity: d.ConsumedCapacity,
		})
	}
	return out
}
