package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// DeviceState returns the DeviceClasses, ResourceSlices and ResourceClaims, with the fields that
// planning reads. list returns the objects of a kind.
func DeviceState(list func(cluster.Kind) []cluster.Object) planning.DeviceState {
	return planning.DeviceState{
		Classes: documentsOf(cluster.CastAll[*resourcev1.DeviceClass](list(cluster.DeviceClasses)), trimDeviceClass),
		Slices:  documentsOf(cluster.CastAll[*resourcev1.ResourceSlice](list(cluster.ResourceSlices)), trimSlice),
		Claims:  documentsOf(cluster.CastAll[*resourcev1.ResourceClaim](list(cluster.ResourceClaims)), trimResourceClaim),
	}
}

// documentsOf returns trimmed copies that share the trimmed objects' contents.
func documentsOf[T any, P interface {
	*T
	cluster.Object
}](list []P, trim func(P)) []T {
	var out []T
	for _, object := range list {
		one := *object
		trim(&one)
		P(&one).SetResourceVersion("")
		P(&one).SetCreationTimestamp(metav1.Time{})
		out = append(out, one)
	}
	return out
}

// The functions below replace the parts of an object without changing their contents, because documents
// share them with the cache.

func trimDeviceClass(o *resourcev1.DeviceClass) {
	*o = resourcev1.DeviceClass{ObjectMeta: identity(o.ObjectMeta), Spec: resourcev1.DeviceClassSpec{Selectors: o.Spec.Selectors}}
}

// trimSlice keeps the owner references to nodes. A trimmed slice of 8 GPUs with 10 attributes each takes
// 34 KB.
func trimSlice(o *resourcev1.ResourceSlice) {
	meta := identity(o.ObjectMeta)
	for _, owner := range o.OwnerReferences {
		if owner.Kind == cluster.Nodes.Kind {
			meta.OwnerReferences = append(meta.OwnerReferences, metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID})
		}
	}
	spec := resourcev1.ResourceSliceSpec{
		Driver: o.Spec.Driver, Pool: o.Spec.Pool, NodeName: o.Spec.NodeName, NodeSelector: o.Spec.NodeSelector, AllNodes: o.Spec.AllNodes,
		PerDeviceNodeSelection: o.Spec.PerDeviceNodeSelection, Devices: o.Spec.Devices, SharedCounters: o.Spec.SharedCounters,
	}
	*o = resourcev1.ResourceSlice{ObjectMeta: meta, Spec: spec}
}

func trimResourceClaim(o *resourcev1.ResourceClaim) {
	out := resourcev1.ResourceClaim{ObjectMeta: identity(o.ObjectMeta)}
	out.Spec.Devices.Requests, out.Spec.Devices.Constraints = o.Spec.Devices.Requests, o.Spec.Devices.Constraints
	out.Status.ReservedFor = o.Status.ReservedFor
	if from := o.Status.Allocation; from != nil {
		out.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: from.NodeSelector, Devices: resourcev1.DeviceAllocationResult{Results: from.Devices.Results}}
	}
	*o = out
}

// Claims looks up the ResourceClaims of pods. A nil Claims finds none.
type Claims struct {
	get func(cluster.Kind, cluster.Key) (cluster.Object, bool)
}

// NewClaims returns a lookup; get returns an object by its key.
func NewClaims(get func(cluster.Kind, cluster.Key) (cluster.Object, bool)) *Claims {
	return &Claims{get}
}

// Of returns what the ResourceClaims of a pod request, and their names. It leaves out a claim that
// Kubernetes does not generate because the pod does not need it.
func (c *Claims) Of(pod *corev1.Pod) ([]planning.PodClaim, []string) {
	if c == nil || len(pod.Spec.ResourceClaims) == 0 {
		return nil, nil
	}
	var claims []planning.PodClaim
	var names []string
	for i := range pod.Spec.ResourceClaims {
		reference := &pod.Spec.ResourceClaims[i]
		name, needed := findClaimName(pod, reference)
		if !needed {
			continue
		}
		claims, names = append(claims, c.describeClaim(pod, reference, name)), append(names, name)
	}
	return claims, names
}

// ClaimNames returns the names of the ResourceClaims that a pod needs and that have a name.
func ClaimNames(pod *corev1.Pod) []string {
	var out []string
	for i := range pod.Spec.ResourceClaims {
		if name, _ := findClaimName(pod, &pod.Spec.ResourceClaims[i]); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// findClaimName returns the name of the ResourceClaim, which is empty while a claim of a template is not
// generated, and whether the pod needs one (Karpenter:
// pkg/controllers/provisioning/scheduling/dra.go, resourceClaimName).
func findClaimName(pod *corev1.Pod, reference *corev1.PodResourceClaim) (name string, needed bool) {
	if reference.ResourceClaimName != nil {
		return *reference.ResourceClaimName, true
	}
	i := slices.IndexFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == reference.Name })
	if i < 0 {
		return "", true
	}
	if generated := pod.Status.ResourceClaimStatuses[i].ResourceClaimName; generated != nil {
		return *generated, true
	}
	return "", false
}

// describeClaim returns what a claim requests. A claim that was generated for the pod keeps its name
// only if it is allocated while the pod has no node: then the pod must follow the allocation.
func (c *Claims) describeClaim(pod *corev1.Pod, reference *corev1.PodResourceClaim, name string) planning.PodClaim {
	key := cluster.Key{Namespace: pod.Namespace, Name: name}
	object, found := c.get(cluster.ResourceClaims, key)
	claim, _ := object.(*resourcev1.ResourceClaim)
	switch template := reference.ResourceClaimTemplateName; {
	case !found && template != nil:
		return planning.PodClaim{Problem: fmt.Sprintf("resourceclaim of the template %q not found", pod.Namespace+"/"+*template)}
	case !found:
		return planning.PodClaim{Name: name, Problem: fmt.Sprintf("resourceclaim %q not found", key)}
	case claim.DeletionTimestamp != nil && pod.Spec.NodeName == "":
		return planning.PodClaim{Name: name, Problem: fmt.Sprintf("resourceclaim %q is being deleted", key)}
	}
	out := planning.PodClaim{Requests: claim.Spec.Devices.Requests, Constraints: claim.Spec.Devices.Constraints}
	if reference.ResourceClaimName != nil || claim.Status.Allocation != nil && pod.Spec.NodeName == "" {
		out.Name = name
	}
	return out
}
