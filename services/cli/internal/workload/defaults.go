package workload

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// setDefaults fills in what the API server does where it changes a decision: a
// limit without a request is the request, and on the host's network a
// container's port is the host's.
func setDefaults(spec *corev1.PodSpec) {
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

// priorities are the values of priority classes by name; "" is the default's.
type priorities map[string]int32

func prioritiesOf(objects []cluster.Object) priorities {
	out := priorities{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
	for _, object := range objects {
		if class, ok := object.(*schedulingv1.PriorityClass); ok {
			out[class.Name] = class.Value
			if class.GlobalDefault {
				out[""] = class.Value
			}
		}
	}
	return out
}

func (p priorities) resolve(spec *corev1.PodSpec) {
	value, known := p[spec.PriorityClassName]
	if spec.Priority == nil && known {
		spec.Priority = &value
	}
}
