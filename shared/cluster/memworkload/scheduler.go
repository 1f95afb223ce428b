package memworkload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

const scheduler = "default-scheduler"

// schedulePods binds pods that fit, in order of priority and age, and writes to the others
// why they do not.
func (k *Kubernetes) schedulePods(ctx context.Context) error {
	pending := k.pendingPods()
	if len(pending) == 0 {
		return nil
	}
	rooms := freeCapacities(k.nodes, k.pods)
	free := k.freeDevices()
	for _, r := range rooms {
		r.devices = free[r.node.Name]
	}
	// Free capacity only shrinks within a pass. If one replica does not fit, no other of
	// the same ReplicaSet does.
	refused := map[types.UID]string{}
	for _, pod := range pending {
		if err := k.schedulePod(ctx, pod, rooms, refused); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kubernetes) schedulePod(ctx context.Context, pod *corev1.Pod, rooms []*nodeCapacity, refused map[types.UID]string) error {
	if len(pod.Spec.SchedulingGates) > 0 {
		return k.markUnschedulable(ctx, pod, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates")
	}
	owner := metav1.GetControllerOf(pod)
	alike := owner != nil && owner.Kind == "ReplicaSet"
	if alike && refused[owner.UID] != "" {
		return k.markUnschedulable(ctx, pod, corev1.PodReasonUnschedulable, refused[owner.UID])
	}
	claims, problem := k.findClaims(pod)
	if problem != "" {
		return k.markUnschedulable(ctx, pod, corev1.PodReasonUnschedulable, problem)
	}
	claim := demandOf(pod)
	best, why := pickNode(claim, rooms, func(r *nodeCapacity) bool {
		_, _, ok := k.allocateDevices(claims, r)
		return ok
	})
	if best == nil {
		message := explainUnschedulable(why, len(rooms))
		if alike {
			refused[owner.UID] = message
		}
		return k.markUnschedulable(ctx, pod, corev1.PodReasonUnschedulable, message)
	}
	if reserved, err := k.reserveClaims(ctx, pod, claims, best); !reserved {
		return err
	}
	best.addPod(claim)
	return k.countWrite(k.server.AsKubernetes(scheduler).Bind(ctx, cluster.KeyOf(pod), pod.UID, best.node.Name))
}

// pendingPods returns the pending pods by priority and age.
func (k *Kubernetes) pendingPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range k.pods {
		if pod.Spec.NodeName == "" && isActive(pod) && pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
			out = append(out, pod)
		}
	}
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(schedulingv1.PodPriority(b), schedulingv1.PodPriority(a)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		)
	})
	return out
}

// pickNode returns the best node on which the pod fits, or counts the reasons of all nodes. hasDevices
// reports whether a node has the devices of the pod's claims.
func pickNode(c podDemand, rooms []*nodeCapacity, hasDevices func(*nodeCapacity) bool) (*nodeCapacity, map[string]int) {
	var best *nodeCapacity
	var bestScore score
	why := map[string]int{}
	for _, r := range rooms {
		if reason := r.rejectionReason(c); reason != "" {
			why[reason]++
			continue
		}
		if !hasDevices(r) {
			why["cannot allocate all claims"]++
			continue
		}
		if s := r.scorePod(c); best == nil || s.isBetterThan(bestScore) {
			best, bestScore = r, s
		}
	}
	return best, why
}

// explainUnschedulable formats the reasons as kube-scheduler does.
func explainUnschedulable(why map[string]int, nodes int) string {
	reasons := make([]string, 0, len(why))
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", why[reason], reason))
	}
	text := fmt.Sprintf("0/%d nodes are available", nodes)
	if len(reasons) == 0 {
		return text + "."
	}
	return text + ": " + strings.Join(reasons, ", ") + "."
}

func (k *Kubernetes) markUnschedulable(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	next := pod.DeepCopy()
	condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if !memcluster.SetPodCondition(next, condition, k.apiTime()) {
		return nil
	}
	return k.setStatus(ctx, scheduler, next)
}
