package memworkload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// The model of Dynamic Resource Allocation supports classes that select the devices of one driver with
// `device.driver == "name"`, and requests for a number of them. Each device has one claim at a time.

// deviceDriver and claimController write slices and claims.
const (
	deviceDriver    = "device-driver"
	claimController = "resourceclaim-controller"
)

// publishDevices publishes the devices of nodes that have been Ready for PublishAfter.
func (k *Kubernetes) publishDevices(ctx context.Context) error {
	machines := k.machinesByNode()
	for _, node := range k.nodes {
		m := machines[node.Spec.ProviderID]
		if m == nil || len(m.spec.Devices) == 0 || readyStatus(node) != corev1.ConditionTrue || !k.isDue(readySince(node).Add(k.options.PublishAfter)) {
			continue
		}
		for _, template := range m.spec.Devices {
			slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name + "-" + template.Driver, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: cluster.Nodes.Kind, Name: node.Name, UID: node.UID},
			}}}
			if _, published := k.view.Get(cluster.ResourceSlices, cluster.KeyOf(slice)); published {
				continue
			}
			slice.Spec = resourcev1.ResourceSliceSpec{
				Driver: template.Driver, NodeName: &node.Name, Devices: template.Devices,
				Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			}
			if err := k.createObject(ctx, deviceDriver, slice); err != nil {
				return err
			}
		}
	}
	return nil
}

func readySince(node *corev1.Node) metav1.Time {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	return node.Status.Conditions[i].LastTransitionTime
}

// syncClaims generates the claims of pods, and releases the claims of pods that have ended.
func (k *Kubernetes) syncClaims(ctx context.Context) error {
	active := map[string]bool{}
	for _, pod := range k.pods {
		if hasEnded(pod) {
			continue
		}
		active[string(pod.UID)] = true
		if err := k.generateClaims(ctx, pod); err != nil {
			return err
		}
	}
	for _, claim := range cluster.ListCached[*resourcev1.ResourceClaim](k.view, cluster.ResourceClaims) {
		next := claim.DeepCopy()
		next.Status.ReservedFor = slices.DeleteFunc(next.Status.ReservedFor, func(by resourcev1.ResourceClaimConsumerReference) bool { return !active[string(by.UID)] })
		if len(next.Status.ReservedFor) == len(claim.Status.ReservedFor) {
			continue
		}
		if len(next.Status.ReservedFor) == 0 {
			next.Status.Allocation = nil
		}
		if err := k.setStatus(ctx, claimController, next); err != nil {
			return err
		}
	}
	return nil
}

// generateClaims creates the claims of the pod's templates and names them in its status.
func (k *Kubernetes) generateClaims(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	next := pod.DeepCopy()
	for _, reference := range pod.Spec.ResourceClaims {
		named := slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == reference.Name })
		if reference.ResourceClaimTemplateName == nil || named {
			continue
		}
		spec, known := k.options.ClaimTemplates[*reference.ResourceClaimTemplateName]
		if !known {
			continue
		}
		claim := &resourcev1.ResourceClaim{Spec: spec, ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + "-" + reference.Name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: cluster.Pods.Kind, Name: pod.Name, UID: pod.UID, Controller: new(true)},
		}}}
		if err := k.createObject(ctx, claimController, claim); err != nil {
			return err
		}
		next.Status.ResourceClaimStatuses = append(next.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &claim.Name})
	}
	if len(next.Status.ResourceClaimStatuses) == len(pod.Status.ResourceClaimStatuses) {
		return nil
	}
	return k.setStatus(ctx, claimController, next)
}

// findClaims returns the claims of a pod, or why it must wait for one.
func (k *Kubernetes) findClaims(pod *corev1.Pod) (claims []*resourcev1.ResourceClaim, problem string) {
	for _, reference := range pod.Spec.ResourceClaims {
		name := reference.ResourceClaimName
		for i := range pod.Status.ResourceClaimStatuses {
			if s := &pod.Status.ResourceClaimStatuses[i]; s.Name == reference.Name {
				name = s.ResourceClaimName
			}
		}
		if name == nil {
			return nil, fmt.Sprintf("waiting for the resourceclaim of %q", reference.Name)
		}
		object, found := k.view.Get(cluster.ResourceClaims, cluster.Key{Namespace: pod.Namespace, Name: *name})
		if !found {
			return nil, fmt.Sprintf("resourceclaim %q not found", *name)
		}
		claims = append(claims, object.(*resourcev1.ResourceClaim))
	}
	return claims, ""
}

// freeDevices returns the published devices that no claim has, by node.
func (k *Kubernetes) freeDevices() map[string][]resourcev1.DeviceRequestAllocationResult {
	type id struct{ driver, pool, device string }
	taken := map[id]bool{}
	for _, claim := range cluster.ListCached[*resourcev1.ResourceClaim](k.view, cluster.ResourceClaims) {
		for _, result := range allocatedDevices(claim) {
			taken[id{result.Driver, result.Pool, result.Device}] = true
		}
	}
	out := map[string][]resourcev1.DeviceRequestAllocationResult{}
	for _, slice := range cluster.ListCached[*resourcev1.ResourceSlice](k.view, cluster.ResourceSlices) {
		for _, device := range slice.Spec.Devices {
			if node := slice.Spec.NodeName; node != nil && !taken[id{slice.Spec.Driver, slice.Spec.Pool.Name, device.Name}] {
				out[*node] = append(out[*node], resourcev1.DeviceRequestAllocationResult{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name})
			}
		}
	}
	return out
}

func allocatedDevices(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}

// allocateDevices returns the devices for each claim of a pod on the node, and the devices that are left;
// false if they do not suffice. An allocated claim must be on this node.
func (k *Kubernetes) allocateDevices(claims []*resourcev1.ResourceClaim, r *nodeCapacity) (results [][]resourcev1.DeviceRequestAllocationResult, left []resourcev1.DeviceRequestAllocationResult, ok bool) {
	left = slices.Clone(r.devices)
	for _, claim := range claims {
		given := slices.Clone(allocatedDevices(claim))
		if slices.ContainsFunc(given, func(d resourcev1.DeviceRequestAllocationResult) bool { return d.Pool != r.node.Name }) {
			return nil, nil, false
		}
		for _, request := range claim.Spec.Devices.Requests {
			if claim.Status.Allocation != nil || request.Exactly == nil {
				continue
			}
			driver := k.driverOf(request.Exactly.DeviceClassName)
			for range max(request.Exactly.Count, 1) {
				i := slices.IndexFunc(left, func(d resourcev1.DeviceRequestAllocationResult) bool { return d.Driver == driver })
				if i < 0 {
					return nil, nil, false
				}
				device := left[i]
				device.Request = request.Name
				given, left = append(given, device), slices.Delete(left, i, i+1)
			}
		}
		results = append(results, given)
	}
	return results, left, true
}

// driverOf returns the driver whose devices a class selects, or "".
func (k *Kubernetes) driverOf(class string) string {
	object, found := k.view.Get(cluster.DeviceClasses, cluster.Key{Name: class})
	if !found || len(object.(*resourcev1.DeviceClass).Spec.Selectors) == 0 {
		return ""
	}
	name, _ := strings.CutPrefix(object.(*resourcev1.DeviceClass).Spec.Selectors[0].CEL.Expression, "device.driver == ")
	return strings.Trim(name, `"`)
}

// reserveClaims writes the allocations of a pod's claims, as kube-scheduler does before it binds the pod.
// It returns false if a claim has changed: then the next pass schedules the pod.
func (k *Kubernetes) reserveClaims(ctx context.Context, pod *corev1.Pod, claims []*resourcev1.ResourceClaim, r *nodeCapacity) (bool, error) {
	results, left, _ := k.allocateDevices(claims, r)
	for i, claim := range claims {
		next := claim.DeepCopy()
		if next.Status.Allocation == nil {
			next.Status.Allocation = &resourcev1.AllocationResult{
				Devices: resourcev1.DeviceAllocationResult{Results: results[i]},
				NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{r.node.Name}},
				}}}},
			}
		}
		next.Status.ReservedFor = append(next.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: cluster.Pods.Resource, Name: pod.Name, UID: pod.UID})
		_, err := k.server.AsKubernetes(scheduler).UpdateStatus(ctx, next)
		if failure := k.countWrite(err); failure != nil || err != nil {
			return false, failure
		}
	}
	r.devices = left
	return true, nil
}
