package memcluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// findObject returns the stored object if it has the UID, or any object if uid is empty.
func (s *Server) findObject(what call, uid types.UID) (cluster.Object, error) {
	object, ok := s.objects[what.kind][what.key]
	if !ok {
		return nil, what.newError(fault.Missing, "the object does not exist")
	}
	if uid != "" && uid != object.GetUID() {
		return nil, what.newError(fault.Conflict, "the object has UID %s, not %s", object.GetUID(), uid)
	}
	return object, nil
}

// deleteObject deletes an object. A nil grace period means the object's own.
func (s *Server) deleteObject(what call, uid types.UID, grace *int64) error {
	object, err := s.findObject(what, uid)
	if err != nil {
		return err
	}
	if pod, ok := object.(*corev1.Pod); ok {
		s.deletePod(pod, grace)
		return nil
	}
	held := len(object.GetFinalizers()) > 0 || what.kind == cluster.Namespaces
	switch {
	case !held:
		s.removeObject(what.kind, what.key)
	case object.GetDeletionTimestamp() == nil:
		s.storeObject(what.kind, s.markDeleted(object, s.apiTime(), 0))
	}
	return nil
}

// markDeleted returns a copy with a deletion timestamp and the next generation.
func (s *Server) markDeleted(object cluster.Object, at metav1.Time, grace int64) cluster.Object {
	next := copyObject(object)
	if next.GetDeletionTimestamp() == nil && next.GetGeneration() > 0 {
		next.SetGeneration(next.GetGeneration() + 1)
	}
	next.SetDeletionTimestamp(&at)
	next.SetDeletionGracePeriodSeconds(&grace)
	if namespace, ok := next.(*corev1.Namespace); ok {
		namespace.Status.Phase = corev1.NamespaceTerminating
	}
	return next
}

// deletePod starts a pod's grace period, or shortens it. The deletion timestamp is the end
// of the grace period. A shorter grace period is measured from the first deletion. If it has
// passed, the pod has one second (Kubernetes: apiserver/pkg/registry/rest/delete.go).
func (s *Server) deletePod(pod *corev1.Pod, asked *int64) {
	grace := effectiveGrace(pod, asked)
	from := s.apiTime().Time
	if pod.DeletionTimestamp != nil {
		running := *pod.DeletionGracePeriodSeconds
		if asked == nil || grace >= running {
			return
		}
		from = pod.DeletionTimestamp.Add(-time.Duration(running) * time.Second)
	}
	end := metav1.NewTime(from.Add(time.Duration(grace) * time.Second))
	if end.Time.Before(s.now()) && pod.DeletionTimestamp != nil {
		end, grace = s.apiTime(), min(grace, 1)
	}
	next := s.markDeleted(pod, end, grace)
	if canBeRemoved(next) {
		s.removeObject(cluster.Pods, cluster.KeyOf(pod))
		return
	}
	s.storeObject(cluster.Pods, next)
}

// effectiveGrace is the grace period of a pod in seconds. It is 0 for a pod that is not
// bound or whose containers have ended.
func effectiveGrace(pod *corev1.Pod, asked *int64) int64 {
	grace := graceSeconds
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = *own
	}
	if asked != nil {
		grace = *asked
	}
	switch {
	case pod.Spec.NodeName == "", hasEnded(pod):
		return 0
	case grace < 0:
		return 1
	}
	return grace
}

// hasEnded reports whether the pod's containers have ended.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
