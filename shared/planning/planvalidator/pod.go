package planvalidator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	corehelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// pod is a pod with cached properties.
type pod struct {
	*corev1.Pod
	key      string
	requests corev1.ResourceList
	affinity nodeaffinity.RequiredNodeAffinity
	node     *node
	// bound pods were bound before the plan.
	bound bool
}

func newPod(p *corev1.Pod) *pod {
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return &pod{Pod: p, key: podKey(p), requests: requests, affinity: nodeaffinity.GetRequiredNodeAffinity(p)}
}

// priority returns the pod's priority, which is 0 if it has none.
func (p *pod) priority() int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// canRunOn reports whether node selector and required node affinity match. An invalid selector matches none.
func (p *pod) canRunOn(on *corev1.Node) bool {
	ok, err := p.affinity.Match(on)
	return err == nil && ok
}

// hasNodeConstraints reports whether the pod has a node selector or required node affinity.
func (p *pod) hasNodeConstraints() bool {
	a := p.Spec.Affinity
	return len(p.Spec.NodeSelector) > 0 || (a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil)
}

func podSpecs(pods []*pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		out = append(out, p.Pod)
	}
	return out
}

// untoleratedTaint returns a taint with effect NoSchedule or NoExecute that the pod does not tolerate.
func untoleratedTaint(taints []corev1.Taint, tolerations []corev1.Toleration) (corev1.Taint, bool) {
	return corehelper.FindMatchingUntoleratedTaint(klog.Logger{}, taints, tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, true)
}

// addResources adds resources to a sum.
func addResources(sum, more corev1.ResourceList) {
	for name, q := range more {
		total := sum[name].DeepCopy()
		total.Add(q)
		sum[name] = total
	}
}

// subtractResources returns a minus b for the resources of a.
func subtractResources(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range a {
		rest := q.DeepCopy()
		rest.Sub(b[name])
		out[name] = rest
	}
	return out
}

// exceededResource returns the first resource of want, by name, that have does not cover.
func exceededResource(want, have corev1.ResourceList) (corev1.ResourceName, bool) {
	var found corev1.ResourceName
	for name, q := range want {
		if there := have[name]; q.Cmp(there) > 0 && (found == "" || name < found) {
			found = name
		}
	}
	return found, found != ""
}
