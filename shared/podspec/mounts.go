package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Mounts are the volumes of many pods, looked up once.
type Mounts struct {
	all map[*corev1.Pod][]scheduling.Volume
	// users counts the pods of each claim.
	users map[types.NamespacedName]int
}

// NewMounts looks up the volumes of the pods. Pods that have ended use none.
func NewMounts(pods []*corev1.Pod, in *Storage) Mounts {
	m := Mounts{all: map[*corev1.Pod][]scheduling.Volume{}, users: map[types.NamespacedName]int{}}
	for _, pod := range pods {
		if ended(pod) {
			continue
		}
		list := Volumes(pod, in)
		if len(list) == 0 {
			continue
		}
		m.all[pod] = list
		for i := range list {
			m.users[types.NamespacedName{Namespace: pod.Namespace, Name: list[i].Claim}]++
		}
	}
	return m
}

// All are the volumes of a pod, each with the name of its claim.
func (m Mounts) All(pod *corev1.Pod) []scheduling.Volume { return m.all[pod] }

// Of are the volumes of a pod without the names of those claims that are its own
// alone: they would part pods that are alike. A claim with a problem keeps its
// name, because somebody must mend it.
func (m Mounts) Of(pod *corev1.Pod) []scheduling.Volume {
	var out []scheduling.Volume
	for _, v := range m.all[pod] {
		if v.Problem == "" && m.users[types.NamespacedName{Namespace: pod.Namespace, Name: v.Claim}] == 1 {
			v.Claim = ""
		}
		out = append(out, v)
	}
	return out
}
