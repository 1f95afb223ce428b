package podspec

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// FileDevices are the objects of Dynamic Resource Allocation in files, and the claims that Kubernetes
// would generate from their templates.
type FileDevices struct {
	byKind    map[cluster.Kind][]cluster.Object
	claims    map[cluster.Key]*resourcev1.ResourceClaim
	templates map[cluster.Key]*resourcev1.ResourceClaimTemplate
}

// ReadDevices returns the objects, and the claims that the controller would generate for the pending
// pods. It sets the names of these claims in the status of the pods.
func ReadDevices(objects []cluster.Object, pending []*corev1.Pod) FileDevices {
	d := FileDevices{map[cluster.Kind][]cluster.Object{}, map[cluster.Key]*resourcev1.ResourceClaim{}, map[cluster.Key]*resourcev1.ResourceClaimTemplate{}}
	for _, object := range objects {
		switch o := object.(type) {
		case *resourcev1.ResourceClaimTemplate:
			d.templates[cluster.Key{Namespace: cmp.Or(o.Namespace, metav1.NamespaceDefault), Name: o.Name}] = o
		case *resourcev1.ResourceClaim:
			d.addClaim(o.DeepCopy(), cmp.Or(o.Namespace, metav1.NamespaceDefault))
		case *resourcev1.DeviceClass:
			d.byKind[cluster.DeviceClasses] = append(d.byKind[cluster.DeviceClasses], o)
		case *resourcev1.ResourceSlice:
			d.byKind[cluster.ResourceSlices] = append(d.byKind[cluster.ResourceSlices], o)
		}
	}
	for _, pod := range pending {
		d.generateClaims(pod)
	}
	for _, list := range d.byKind {
		slices.SortFunc(list, func(a, b cluster.Object) int { return cluster.KeyOf(a).Compare(cluster.KeyOf(b)) })
	}
	return d
}

// IsEmpty reports whether the files have no such object.
func (d FileDevices) IsEmpty() bool { return len(d.byKind) == 0 && len(d.templates) == 0 }

// addClaim adds a claim with the defaults of the API server.
func (d FileDevices) addClaim(claim *resourcev1.ResourceClaim, namespace string) {
	claim.Namespace = namespace
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			setCountDefault(&exactly.AllocationMode, &exactly.Count)
		}
		for j := range request.FirstAvailable {
			setCountDefault(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count)
		}
	}
	d.claims[cluster.KeyOf(claim)] = claim
	d.byKind[cluster.ResourceClaims] = append(d.byKind[cluster.ResourceClaims], claim)
}

func setCountDefault(mode *resourcev1.DeviceAllocationMode, count *int64) {
	*mode = cmp.Or(*mode, resourcev1.DeviceAllocationModeExactCount)
	if *mode == resourcev1.DeviceAllocationModeExactCount {
		*count = cmp.Or(*count, 1)
	}
}

// generateClaims generates the claims of the templates that a pod names, unless the files have them. A
// missing template generates none, and the plan reports it.
func (d FileDevices) generateClaims(pod *corev1.Pod) {
	for i := range pod.Spec.ResourceClaims {
		reference := &pod.Spec.ResourceClaims[i]
		if reference.ResourceClaimTemplateName == nil {
			continue
		}
		template := d.templates[cluster.Key{Namespace: pod.Namespace, Name: *reference.ResourceClaimTemplateName}]
		name, needed := findClaimName(pod, reference)
		if template == nil || !needed || d.claims[cluster.Key{Namespace: pod.Namespace, Name: name}] != nil {
			continue
		}
		claim := &resourcev1.ResourceClaim{Spec: *template.Spec.Spec.DeepCopy()}
		claim.Name = cmp.Or(name, pod.Name+"-"+reference.Name)
		d.addClaim(claim, pod.Namespace)
		if name == "" {
			pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &claim.Name})
		}
	}
}

// State returns the objects for a snapshot.
func (d FileDevices) State() planning.DeviceState {
	return DeviceState(func(kind cluster.Kind) []cluster.Object { return d.byKind[kind] })
}

// Claims returns the lookup of the pods' claims.
func (d FileDevices) Claims() *Claims {
	return NewClaims(func(_ cluster.Kind, key cluster.Key) (cluster.Object, bool) {
		claim, ok := d.claims[key]
		return claim, ok
	})
}
