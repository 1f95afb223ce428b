package workload

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

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
