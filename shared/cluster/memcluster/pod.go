package memcluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// The defaults of the API server.
const (
	graceSeconds      int64 = 30
	tolerationSeconds int64 = 300
)

// fillPod sets a new pod's defaults, and what admission adds to every pod.
func (s *Server) fillPod(what call, pod *corev1.Pod) error {
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(graceSeconds)
	}
	for i := range pod.Spec.InitContainers {
		defaultRequests(&pod.Spec.InitContainers[i].Resources)
	}
	for i := range pod.Spec.Containers {
		defaultRequests(&pod.Spec.Containers[i].Resources)
	}
	defaultPodRequests(pod)
	addDefaultToleration(pod, corev1.TaintNodeNotReady)
	addDefaultToleration(pod, corev1.TaintNodeUnreachable)
	return s.setPriority(what, pod)
}

// defaultRequests sets the request of each resource that only has a limit.
func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// defaultPodRequests sets the pod-level request of each resource that only has a pod-level limit: to
// what the containers request, or else to the limit.
func defaultPodRequests(pod *corev1.Pod) {
	if pod.Spec.Resources == nil {
		return
	}
	asked := maps.Clone(pod.Spec.Resources.Requests)
	defaultRequests(pod.Spec.Resources)
	for name, sum := range resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{}) {
		_, stated := asked[name]
		_, limited := pod.Spec.Resources.Limits[name]
		if limited && !stated && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			pod.Spec.Resources.Requests[name] = sum
		}
	}
}

// addDefaultToleration lets a pod stay for five minutes on a node with the taint.
func addDefaultToleration(pod *corev1.Pod, taint string) {
	for _, t := range pod.Spec.Tolerations {
		covers := t.Key == taint || t.Key == "" && t.Operator == corev1.TolerationOpExists
		if covers && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: new(tolerationSeconds),
	})
}

// setPriority resolves the pod's priority class, as admission does.
func (s *Server) setPriority(what call, pod *corev1.Pod) error {
	if pod.Spec.Priority != nil {
		return nil
	}
	class, err := s.findPriorityClass(what, pod.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	pod.Spec.PriorityClassName = class.Name
	pod.Spec.Priority = new(class.Value)
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = class.PreemptionPolicy
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	}
	return nil
}

func (s *Server) findPriorityClass(what call, name string) (*schedulingv1.PriorityClass, error) {
	classes := s.objects[cluster.PriorityClasses]
	if name != "" {
		class, ok := classes[cluster.Key{Name: name}]
		if !ok {
			return nil, what.newError(fault.Denied, "PriorityClass %s does not exist", name)
		}
		return class.(*schedulingv1.PriorityClass), nil
	}
	none := &schedulingv1.PriorityClass{}
	// Of several default classes the API server takes the lowest.
	for _, key := range slices.SortedFunc(maps.Keys(classes), compareKeys) {
		class := classes[key].(*schedulingv1.PriorityClass)
		if class.GlobalDefault && (none.Name == "" || class.Value < none.Value) {
			none = class
		}
	}
	return none, nil
}

// systemPriorityClasses returns the two classes that every API server creates.
func systemPriorityClasses() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}, Value: 2_000_000_000},
		{ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}, Value: 2_000_001_000},
	}
}

// bindPod assigns a pod to a node.
func (s *Server) bindPod(what call, uid types.UID, node string) error {
	stored, err := s.findObject(what, uid)
	if err != nil {
		return err
	}
	pod := stored.(*corev1.Pod).DeepCopy()
	switch {
	case pod.DeletionTimestamp != nil:
		return what.newError(fault.Conflict, "the pod is being deleted")
	case pod.Spec.NodeName != "":
		return what.newError(fault.Conflict, "the pod is bound to node %s", pod.Spec.NodeName)
	}
	pod.Spec.NodeName = node
	SetPodCondition(pod, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, s.apiTime())
	s.storeObject(cluster.Pods, pod)
	return nil
}

// SetPodCondition sets one condition and reports whether that changed the pod.
func SetPodCondition(pod *corev1.Pod, condition corev1.PodCondition, now metav1.Time) bool {
	for i, old := range pod.Status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		condition.LastTransitionTime = old.LastTransitionTime
		if old.Status != condition.Status {
			condition.LastTransitionTime = now
		}
		condition.LastProbeTime = old.LastProbeTime
		if old == condition {
			return false
		}
		pod.Status.Conditions[i] = condition
		return true
	}
	condition.LastTransitionTime = now
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
	return true
}

// IsReady reports whether the pod's Ready condition is true.
func IsReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
