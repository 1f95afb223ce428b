package scenarios

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const appKey = "app"

// pod returns a pod with one container, labelled with its own name.
func pod(namespace, name string, requests corev1.ResourceList) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{appKey: name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "pause", Resources: corev1.ResourceRequirements{Requests: requests},
		}}},
	}
}

func (s size) requests() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(s.milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(s.memoryMiB<<20, resource.BinarySI),
	}
}

// daemons returns the daemons of every node: together a quarter of a core and 200 MiB.
func daemons() []corev1.Pod {
	var out []corev1.Pod
	for _, d := range []struct{ name, cpu, memory string }{{"ds-cni", "50m", ""}, {"ds-proxy", "100m", ""}, {"ds-agent", "100m", "200Mi"}} {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(d.cpu)}
		if d.memory != "" {
			requests[corev1.ResourceMemory] = resource.MustParse(d.memory)
		}
		p := pod("kube-system", d.name, requests)
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		out = append(out, p)
	}
	return out
}

// identical adds identical pods of one core each.
func identical(_ *draw, s *Scenario, count int) {
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	s.PodGroups = []PodGroup{{count, pod("default", "inflate", one)}}
}

// deployments adds deployments without constraints.
func deployments(d *draw, s *Scenario, count int) {
	grouped(d, s, count, func(*corev1.Pod) int { return 0 })
}

// grouped adds deployments until there are count pods. constrain changes the template and
// returns the maximum number of replicas; 0 is no limit.
func grouped(d *draw, s *Scenario, count int, constrain func(template *corev1.Pod) (most int)) {
	// No deployment has more than a twentieth of the pods: otherwise the distribution's
	// tail would make the scenarios of different seeds incomparable.
	const part, least = 20, 10
	for left, n := count, 0; left > 0; n++ {
		template := pod("default", fmt.Sprintf("dep-%d", n), d.size().requests())
		replicas := min(d.replicas(max(least, count/part)), left)
		if most := constrain(&template); most > 0 {
			replicas = min(replicas, most)
		}
		s.PodGroups = append(s.PodGroups, PodGroup{replicas, template})
		left -= replicas
	}
}

// unique adds pods of which no two are equal, so that grouping does not help.
func unique(d *draw, s *Scenario, count int) {
	for n := range count {
		s.Pods = append(s.Pods, pod("default", fmt.Sprintf("u-%d", n), d.jitter(d.size()).requests()))
	}
}
