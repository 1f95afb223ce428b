package podspec

import (
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pooled is the maximum number of values in a generation of a Pool.
const pooled = 16384

// Pool lets equal parts of pods share memory: all pods of a Deployment have the same map of labels.
// Shared values must not be changed. The zero value is ready to use and safe for concurrent use.
//
// The pool has two generations and a bounded size, and drops values that no pod has had for long.
type Pool struct {
	mu         sync.Mutex
	young, old map[string]any
	key        key
}

// Trim trims a pod and shares its parts.
func (p *Pool) Trim(pod *corev1.Pod) {
	Trim(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	pod.Namespace, pod.Spec.NodeName = unique.Make(pod.Namespace).Value(), unique.Make(pod.Spec.NodeName).Value()
	pod.Labels = p.shareLabels(pod.Labels)
	pod.Annotations = p.shareLabels(pod.Annotations)
	pod.Spec.NodeSelector = p.shareLabels(pod.Spec.NodeSelector)
	pod.OwnerReferences = p.shareOwners(pod.OwnerReferences)
	pod.Spec.Affinity = p.shareAffinity(pod.Spec.Affinity)
	pod.Spec.Tolerations = shareList(p, 't', pod.Spec.Tolerations, func() { p.key.tolerations(pod.Spec.Tolerations) })
	pod.Spec.TopologySpreadConstraints = shareList(p, 's', pod.Spec.TopologySpreadConstraints, func() { p.key.spread(pod.Spec.TopologySpreadConstraints) })
	pod.Spec.Priority = sharePointer(p, 'p', pod.Spec.Priority)
	pod.Spec.TerminationGracePeriodSeconds = sharePointer(p, 'g', pod.Spec.TerminationGracePeriodSeconds)
	p.shareContainers(&pod.Spec)
}

// shareValue returns the pooled value for the current key, or adds this one.
func (p *Pool) shareValue(value any) any {
	if found, ok := p.young[string(p.key.bytes)]; ok {
		return found
	}
	text := string(p.key.bytes)
	if found, ok := p.old[text]; ok {
		value = found
	}
	if p.young == nil {
		p.young = make(map[string]any)
	}
	if len(p.young) == pooled {
		p.old, p.young = p.young, make(map[string]any)
	}
	p.young[text] = value
	return value
}

// startKey starts the key of a kind of value.
func (p *Pool) startKey(kind byte) { p.key.bytes = append(p.key.bytes[:0], kind) }

func shareList[T any](p *Pool, kind byte, list []T, write func()) []T {
	if len(list) == 0 {
		return nil
	}
	p.startKey(kind)
	write()
	return p.shareValue(list).([]T)
}

func sharePointer[T int32 | int64](p *Pool, kind byte, value *T) *T {
	if value == nil {
		return nil
	}
	p.startKey(kind)
	p.key.number(int64(*value))
	return p.shareValue(value).(*T)
}

func (p *Pool) shareLabels(from map[string]string) map[string]string {
	if len(from) == 0 {
		return nil
	}
	p.startKey('m')
	p.key.labels(from)
	return p.shareValue(from).(map[string]string)
}

// shareAffinity is not shared for daemon pods, whose affinity names their node.
func (p *Pool) shareAffinity(from *corev1.Affinity) *corev1.Affinity {
	if from == nil || picksNode(from) {
		return from
	}
	p.startKey('a')
	p.key.affinity(from)
	return p.shareValue(from).(*corev1.Affinity)
}

func picksNode(affinity *corev1.Affinity) bool {
	if affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchFields) > 0 {
			return true
		}
	}
	return false
}

func (p *Pool) shareOwners(from []metav1.OwnerReference) []metav1.OwnerReference {
	return shareList(p, 'o', from, func() {
		for i := range from {
			for _, text := range [...]string{from[i].APIVersion, from[i].Kind, from[i].Name, string(from[i].UID)} {
				p.key.text(text)
			}
			if p.key.present(from[i].Controller != nil) {
				p.key.present(*from[i].Controller)
			}
		}
	})
}

// shareContainers are shared if they are the one container that Trim creates.
func (p *Pool) shareContainers(spec *corev1.PodSpec) {
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 || spec.Containers[0].Name != "" {
		return
	}
	one := &spec.Containers[0]
	if len(one.Resources.Limits) > 0 {
		return
	}
	spec.Containers = shareList(p, 'c', spec.Containers, func() {
		var takes amounts
		takes.addAll(one.Resources.Requests)
		takes.sort()
		p.key.amounts(takes)
		p.key.length(len(one.Ports))
		for _, port := range one.Ports {
			p.key.text(port.HostIP)
			p.key.number(int64(port.HostPort))
			p.key.text(string(port.Protocol))
		}
	})
}
