package simulate

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// deviceObjects are the objects of Dynamic Resource Allocation in the manifests.
type deviceObjects struct {
	byKind    map[cluster.Kind][]cluster.Object
	claims    map[cluster.Key]*resourcev1.ResourceClaim
	templates map[cluster.Key]*resourcev1.ResourceClaimTemplate
}

// readDevices returns the objects, and the claims that the controller would generate for the pending
// pods. It sets the names of these claims in the status of the pods.
func readDevices(objects []cluster.Object, pending []*corev1.Pod) deviceObjects {
	d := deviceObjects{map[cluster.Kind][]cluster.Object{}, map[cluster.Key]*resourcev1.ResourceClaim{}, map[cluster.Key]*resourcev1.ResourceClaimTemplate{}}
	for _, object := range objects {
		switch o := object.(type) {
		case *resourcev1.ResourceClaimTemplate:
			d.templates[cluster.Key{Namespace: namespaceOf(o), Name: o.Name}] = o
		case *resourcev1.ResourceClaim:
			d.addClaim(o.DeepCopy(), namespaceOf(o))
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

// isEmpty reports whether the manifests have no such object.
func (d deviceObjects) isEmpty() bool { return len(d.byKind) == 0 && len(d.templates) == 0 }

// addClaim adds a claim with the defaults of the API server.
func (d deviceObjects) addClaim(claim *resourcev1.ResourceClaim, namespace string) {
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

// generateClaims generates the claims of the templates that a pod names, unless its status has them. A
// missing template generates none, and the plan reports it.
func (d deviceObjects) generateClaims(pod *corev1.Pod) {
	for _, reference := range pod.Spec.ResourceClaims {
		hasStatus := slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == reference.Name })
		if reference.ResourceClaimTemplateName == nil || hasStatus {
			continue
		}
		template := d.templates[cluster.Key{Namespace: pod.Namespace, Name: *reference.ResourceClaimTemplateName}]
		if template == nil {
			continue
		}
		claim := &resourcev1.ResourceClaim{Spec: *template.Spec.Spec.DeepCopy()}
		claim.Name = strings.Join([]string{pod.Name, reference.Name}, "-")
		d.addClaim(claim, pod.Namespace)
		pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &claim.Name})
	}
}

// planDevices adds the devices to a snapshot, and returns the lookup of the pods' claims. Without any
// object of Dynamic Resource Allocation it does nothing, as in a cluster where it is off.
func (a *PlanResult) planDevices(s *planning.Snapshot, d deviceObjects) *podspec.Claims {
	if d.isEmpty() {
		return nil
	}
	s.Settings.PlanDRARequests, s.Settings.Gates.DRANVIDIAGPU, s.Settings.Gates.DRAEFA = true, true, true
	a.assume("ResourceClaims are planned as with IGNORE_DRA_REQUESTS=false and the AWS feature gates DRANVIDIAGPU and DRAEFA")
	s.Devices = podspec.DeviceState(func(kind cluster.Kind) []cluster.Object { return d.byKind[kind] })
	return podspec.NewClaims(func(_ cluster.Kind, key cluster.Key) (cluster.Object, bool) {
		claim, ok := d.claims[key]
		return claim, ok
	})
}
