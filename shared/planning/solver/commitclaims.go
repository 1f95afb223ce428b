package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// commitDevices writes the allocations of a committed result into the claims of the snapshot. Later
// simulations then find the devices allocated, and release them if the pods are moved again.
func (st *baseline) commitDevices(result *planning.Result) {
	if len(result.Allocations) == 0 {
		return
	}
	w, holders := st.state, listHolders(result)
	claims := slices.Clone(w.snapshot.Devices.Claims)
	for i := range result.Allocations {
		one := &result.Allocations[i]
		at := slices.IndexFunc(claims, func(c resourcev1.ResourceClaim) bool { return c.Namespace == one.Namespace && c.Name == one.Claim })
		if at < 0 {
			at = len(claims)
			claims = append(claims, resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Claim}})
		}
		claims[at].Status = newClaimStatus(one, holders[apitypes.NamespacedName{Namespace: one.Namespace, Name: one.Claim}])
	}
	w.snapshot.Devices.Claims, w.inventory = claims, nil
}

// keepAllocations keeps the allocations of a planned node with the node that was added last.
func (st *baseline) keepAllocations(result *planning.Result, planned int) {
	last := &st.committed.nodes[len(st.committed.nodes)-1]
	for _, one := range result.Allocations {
		if one.Node == "" && one.PlannedNode == planned {
			last.allocations = append(last.allocations, one)
		}
	}
}

// listHolders returns the UIDs of the placed pods by claim.
func listHolders(result *planning.Result) map[apitypes.NamespacedName][]string {
	out := map[apitypes.NamespacedName][]string{}
	add := func(namespace string, pod *planning.PodRef) {
		for _, name := range pod.Claims {
			key := apitypes.NamespacedName{Namespace: namespace, Name: name}
			out[key] = append(out[key], pod.UID)
		}
	}
	for i := range result.Nominations {
		add(result.Nominations[i].Namespace, &result.Nominations[i].Pod)
	}
	for i := range result.Nodes {
		for j := range result.Nodes[i].Pods {
			add(result.Nodes[i].Pods[j].Namespace, &result.Nodes[i].Pods[j].Pod)
		}
	}
	return out
}

// newClaimStatus returns the status of a claim with these devices. Only the node of the pods can use
// them: a planned node has no name yet, so that no other node can.
func newClaimStatus(one *planning.ClaimAllocation, holders []string) resourcev1.ResourceClaimStatus {
	node := one.Node
	if node == "" {
		node = plannedHostname
	}
	out := resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}}
	results := &out.Allocation.Devices.Results
	for i := range one.Devices {
		d := &one.Devices[i]
		r := resourcev1.DeviceRequestAllocationResult{Request: d.Request, Driver: d.Driver, Pool: d.Pool, Device: d.Device, ConsumedCapacity: d.ConsumedCapacity}
		repeated := slices.ContainsFunc(one.Devices[:i], func(other planning.AllocatedDevice) bool {
			return other.InstanceType != d.InstanceType && other.Request == d.Request && other.Driver == d.Driver && other.Pool == d.Pool && other.Device == d.Device
		})
		if !d.Template && !repeated {
			*results = append(*results, r)
		}
	}
	for _, uid := range holders {
		out.ReservedFor = append(out.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: string(corev1.ResourcePods), UID: apitypes.UID(uid)})
	}
	return out
}
