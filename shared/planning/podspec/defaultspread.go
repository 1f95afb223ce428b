package podspec

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// defaultSpreadAnnotation marks a pod in memory whose constraints are the cluster's defaults. Trim drops
// an annotation of this name that a user wrote.
const defaultSpreadAnnotation = "joist.sh/default-spread"

// DefaultSpread adds the cluster's default topology spread constraints to pods, with the selector that
// kube-scheduler deduces (Kubernetes: pkg/scheduler/framework/plugins/helper/spread.go).
type DefaultSpread struct {
	Constraints []corev1.TopologySpreadConstraint
	// Services returns the Services of a namespace, and Find an owner of a pod.
	Services func(namespace string) []*corev1.Service
	Find     func(kind cluster.Kind, key cluster.Key) (cluster.Object, bool)
}

// Applies reports whether a pod may get default constraints: it has none of its own, and is not bound to its
// node.
func (d DefaultSpread) Applies(pod *corev1.Pod) bool {
	return len(pod.Spec.TopologySpreadConstraints) == 0 && !NodeBound(pod)
}

// ListConstraints returns the default constraints of a pod with their selector. It returns nil if no Service
// and no owner selects pods like it: an empty selector would count every pod of the namespace.
func (d DefaultSpread) ListConstraints(pod *corev1.Pod) []corev1.TopologySpreadConstraint {
	selector := d.deduceSelector(pod)
	if selector == nil {
		return nil
	}
	out := slices.Clone(d.Constraints)
	for i := range out {
		out[i].LabelSelector = selector
	}
	return out
}

// WithDefaultSpread returns a copy of the pod with these default constraints. It shares the other parts.
func WithDefaultSpread(pod *corev1.Pod, constraints []corev1.TopologySpreadConstraint) *corev1.Pod {
	out := *pod
	out.Spec.TopologySpreadConstraints = constraints
	out.Annotations = maps.Clone(pod.Annotations)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[defaultSpreadAnnotation] = "true"
	return &out
}

// deduceSelector merges the selectors of the pod's Services with that of its controller. A
// ReplicationController's replaces keys of Services; a ReplicaSet's and a StatefulSet's must hold, too.
func (d DefaultSpread) deduceSelector(pod *corev1.Pod) *metav1.LabelSelector {
	var out metav1.LabelSelector
	merge := func(labels map[string]string) {
		if len(labels) > 0 && out.MatchLabels == nil {
			out.MatchLabels = map[string]string{}
		}
		maps.Copy(out.MatchLabels, labels)
	}
	for _, service := range d.Services(pod.Namespace) {
		if hasLabels(pod.Labels, service.Spec.Selector) {
			merge(service.Spec.Selector)
		}
	}
	switch owner := d.findController(pod).(type) {
	case *corev1.ReplicationController:
		merge(owner.Spec.Selector)
	case *appsv1.ReplicaSet:
		out.MatchExpressions = listRequirements(owner.Spec.Selector)
	case *appsv1.StatefulSet:
		out.MatchExpressions = listRequirements(owner.Spec.Selector)
	}
	if len(out.MatchLabels)+len(out.MatchExpressions) == 0 {
		return nil
	}
	return &out
}

func hasLabels(labels, want map[string]string) bool {
	for key, value := range want {
		if had, ok := labels[key]; !ok || had != value {
			return false
		}
	}
	return true
}

// SpreadOwners are the kinds of controllers whose selectors count.
var SpreadOwners = []cluster.Kind{cluster.ReplicationControllers, cluster.ReplicaSets, cluster.StatefulSets}

// findController returns the pod's controller, or nil if it has none of the kinds or it does not exist.
func (d DefaultSpread) findController(pod *corev1.Pod) cluster.Object {
	kind, key, ok := SpreadOwner(pod)
	if !ok {
		return nil
	}
	found, _ := d.Find(kind, key)
	return found
}

// SpreadOwner returns the kind and the key of the pod's controller, if it is one of SpreadOwners.
func SpreadOwner(pod *corev1.Pod) (cluster.Kind, cluster.Key, bool) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		for _, kind := range SpreadOwners {
			if kind.Kind == owner.Kind && kind.APIVersion() == owner.APIVersion {
				return kind, cluster.Key{Namespace: pod.Namespace, Name: owner.Name}, true
			}
		}
	}
	return cluster.Kind{}, cluster.Key{}, false
}

// listRequirements returns a selector as expressions, in the order of the keys.
func listRequirements(selector *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	if selector == nil {
		return nil
	}
	var out []metav1.LabelSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]}})
	}
	return append(out, selector.MatchExpressions...)
}

// SpreadSelector returns the selector of a Service or of one of SpreadOwners.
func SpreadSelector(o cluster.Object) any {
	switch o := o.(type) {
	case *corev1.Service:
		return o.Spec.Selector
	case *corev1.ReplicationController:
		return o.Spec.Selector
	case *appsv1.ReplicaSet:
		return o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	}
	return nil
}
