package podspec

import corev1 "k8s.io/api/core/v1"

// SetDefaults applies the API server's defaults that affect planning: a limit without a request
// becomes the request, and on the host network a container's port becomes its host port. Templates do
// not have these defaults.
func SetDefaults(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			defaultRequests(&list[i].Resources)
			for j := range list[i].Ports {
				if port := &list[i].Ports[j]; spec.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
}

func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, asked := r.Requests[name]; asked {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}
