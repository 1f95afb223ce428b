package memworkload

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

// nodesWithKubelet returns the nodes whose kubelet works. A node that no instance of this
// model backs has one while it is Ready.
func (k *Kubernetes) nodesWithKubelet() map[string]bool {
	machines := k.machinesByNode()
	out := map[string]bool{}
	for _, node := range k.nodes {
		if m := machines[node.Spec.ProviderID]; m != nil {
			out[node.Name] = m.gone.IsZero()
			continue
		}
		out[node.Name] = readyStatus(node) == corev1.ConditionTrue
	}
	return out
}

// startPods starts pods that were bound StartAfter ago.
func (k *Kubernetes) startPods(ctx context.Context) error {
	alive := k.nodesWithKubelet()
	for _, pod := range k.pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || !alive[pod.Spec.NodeName] {
			continue
		}
		if !k.isDue(boundSince(pod).Add(k.options.StartAfter)) {
			continue
		}
		next := pod.DeepCopy()
		next.Status.Phase = corev1.PodRunning
		now := k.apiTime()
		next.Status.StartTime = &now
		for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			memcluster.SetPodCondition(next, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}, now)
		}
		if err := k.setStatus(ctx, "kubelet", next); err != nil {
			return err
		}
	}
	return nil
}

func boundSince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// stopPods removes deleted pods whose containers have stopped.
func (k *Kubernetes) stopPods(ctx context.Context) error {
	alive := k.nodesWithKubelet()
	for _, pod := range k.pods {
		if pod.DeletionTimestamp == nil || !alive[pod.Spec.NodeName] || *pod.DeletionGracePeriodSeconds == 0 {
			continue
		}
		if !k.isDue(k.stopsAt(pod)) {
			continue
		}
		if err := k.killPod(ctx, "kubelet", pod); err != nil {
			return err
		}
	}
	return nil
}

// stopsAt is when the pod's containers stop, at most at the end of its grace period.
func (k *Kubernetes) stopsAt(pod *corev1.Pod) time.Time {
	end := pod.DeletionTimestamp.Time
	if k.options.StopAfter <= 0 {
		return end
	}
	asked := end.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	if stop := asked.Add(k.options.StopAfter); stop.Before(end) {
		return stop
	}
	return end
}
