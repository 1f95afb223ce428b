package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// SetDefaults applies the API server's defaults that affect planning: a limit without a request
// becomes the request, for each container and for the pod, and on the host network a container's port
// becomes its host port. Templates do not have these defaults.
func SetDefaults(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			addRequestsOf(&list[i].Resources, missingRequests(&list[i].Resources))
			for j := range list[i].Ports {
				if port := &list[i].Ports[j]; spec.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
	if missing := missingPodRequests(spec); len(missing) > 0 {
		addRequestsOf(spec.Resources, missing)
	}
}

func addRequestsOf(r *corev1.ResourceRequirements, missing corev1.ResourceList) {
	for name, quantity := range missing {
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = quantity
	}
}

// missingRequests returns the limits without a request.
func missingRequests(r *corev1.ResourceRequirements) corev1.ResourceList {
	var out corev1.ResourceList
	for name, limit := range r.Limits {
		if _, asked := r.Requests[name]; asked {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = limit.DeepCopy()
	}
	return out
}

// missingPodRequests returns the requests that the API server adds to the pod-level resources of a pod
// whose containers have their defaults (Kubernetes: pkg/apis/core/v1/defaults.go, defaultPodRequests).
// It does so only if the pod has pod-level limits. A resource that containers request defaults to the
// sum of their requests; another one, and huge pages in any case, to the pod-level limit. Huge pages
// without a pod-level limit are left out, because their default is what the containers request.
func missingPodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	if spec.Resources == nil || len(spec.Resources.Limits) == 0 {
		return nil
	}
	out := missingRequests(spec.Resources)
	requested := helpers.AggregateContainerRequests(&corev1.Pod{Spec: *spec}, helpers.PodResourcesOptions{})
	for name, sum := range requested {
		if _, asked := spec.Resources.Requests[name]; asked || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = sum.DeepCopy()
	}
	for name := range out {
		if !helpers.IsSupportedPodLevelResource(name) {
			delete(out, name)
		}
	}
	return out
}
