package memworkload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

const nodeLifecycleController = "node-controller"

// apiTime is the current time in whole seconds, as the API writes it.
func (k *Kubernetes) apiTime() metav1.Time { return metav1.NewTime(k.now.Truncate(time.Second)) }

// syncNodes sets the Ready condition of nodes and the taints that follow from it, and
// removes nodes as the cloud controller does.
func (k *Kubernetes) syncNodes(ctx context.Context) error {
	machines := k.machinesByNode()
	for _, node := range k.nodes {
		m := machines[node.Spec.ProviderID]
		if m != nil && k.isNodeRemovedByCloud(m) && node.DeletionTimestamp == nil {
			err := k.server.AsKubernetes("cloud-node-lifecycle-controller").Delete(ctx, cluster.Nodes, cluster.KeyOf(node), node.UID)
			if err := k.countWrite(err); err != nil {
				return err
			}
			continue
		}
		if err := k.syncNode(ctx, node, m); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kubernetes) machinesByNode() map[string]*machine {
	out := map[string]*machine{}
	for _, m := range k.machines {
		if m.joined {
			out[m.boot.ProviderID] = m
		}
	}
	return out
}

// isNodeRemovedByCloud reports whether the cloud's controller removes the machine's node.
func (k *Kubernetes) isNodeRemovedByCloud(m *machine) bool {
	return k.options.ForgetAfter > 0 && !m.gone.IsZero() && k.isDue(m.gone.Add(k.options.ForgetAfter))
}

func (k *Kubernetes) syncNode(ctx context.Context, node *corev1.Node, m *machine) error {
	next := *node // Only what changes is copied, because few nodes change.
	next.Status.Conditions = slices.Clone(node.Status.Conditions)
	if m != nil {
		k.updateReadyCondition(&next, m)
	}
	isSameStatus := slices.Equal(node.Status.Conditions, next.Status.Conditions) && node.Status.NodeInfo.BootID == next.Status.NodeInfo.BootID
	if !isSameStatus && !equality.Semantic.DeepEqual(node.Status, next.Status) {
		// The taints follow in the next pass, with the version that this makes.
		return k.setStatus(ctx, "kubelet", next.DeepCopy())
	}
	next.Spec.Taints = slices.Clone(node.Spec.Taints)
	k.taintByCondition(&next)
	if slices.Equal(node.Spec.Taints, next.Spec.Taints) || equality.Semantic.DeepEqual(node.Spec, next.Spec) {
		return nil
	}
	_, err := k.server.AsKubernetes(nodeLifecycleController).Update(ctx, next.DeepCopy())
	return k.countWrite(err)
}

// updateReadyCondition sets the Ready condition of a machine's node.
func (k *Kubernetes) updateReadyCondition(node *corev1.Node, m *machine) {
	switch {
	case !m.gone.IsZero():
		if k.isDue(m.gone.Add(k.options.SilentAfter)) {
			setReadyCondition(node, corev1.ConditionUnknown, "NodeStatusUnknown", k.apiTime())
		}
	case !m.rebooted.IsZero() && !k.isDue(m.rebooted.Add(k.options.JoinAfter)):
		setReadyCondition(node, corev1.ConditionUnknown, "NodeStatusUnknown", k.apiTime())
	case !m.rebooted.IsZero():
		m.rebooted = time.Time{}
		node.Status.NodeInfo.BootID = fmt.Sprintf("%s-%d", m.boot.InstanceID, m.reboots)
		node.Status.Conditions = nil
		setReadyCondition(node, corev1.ConditionTrue, "KubeletReady", k.apiTime())
	case readyStatus(node) == corev1.ConditionFalse && k.isDue(node.CreationTimestamp.Add(k.options.ReadyAfter)):
		setReadyCondition(node, corev1.ConditionTrue, "KubeletReady", k.apiTime())
	}
}

// taintByCondition adds or removes the taints not-ready and unreachable by the Ready
// condition. It does not change a node without that condition.
func (k *Kubernetes) taintByCondition(node *corev1.Node) {
	wanted := ""
	switch readyStatus(node) {
	case corev1.ConditionFalse:
		wanted = corev1.TaintNodeNotReady
	case corev1.ConditionUnknown:
		wanted = corev1.TaintNodeUnreachable
	case "":
		return
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key != wanted && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
	})
	if wanted != "" {
		addTaint(node, wanted, corev1.TaintEffectNoSchedule, k.apiTime())
		addTaint(node, wanted, corev1.TaintEffectNoExecute, k.apiTime())
	}
	if len(node.Spec.Taints) == 0 {
		node.Spec.Taints = nil
	}
}

func addTaint(node *corev1.Node, key string, effect corev1.TaintEffect, now metav1.Time) {
	for _, t := range node.Spec.Taints {
		if t.Key == key && t.Effect == effect {
			return
		}
	}
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect, TimeAdded: &now})
}

// readyStatus is the status of the node's Ready condition, or "".
func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func setReadyCondition(node *corev1.Node, status corev1.ConditionStatus, reason string, now metav1.Time) {
	if readyStatus(node) == status {
		return
	}
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reason, LastTransitionTime: now, LastHeartbeatTime: now,
	})
}

// evictTainted deletes pods that do not tolerate a NoExecute taint of their node any more.
func (k *Kubernetes) evictTainted(ctx context.Context) error {
	nodes := map[string]*corev1.Node{}
	for _, node := range k.nodes {
		nodes[node.Name] = node
	}
	for _, pod := range k.pods {
		node, ok := nodes[pod.Spec.NodeName]
		if !ok || !isActive(pod) || !k.isEvictedByTaint(pod, node) {
			continue
		}
		if err := k.removePod(ctx, "taint-eviction-controller", pod); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kubernetes) isEvictedByTaint(pod *corev1.Pod, node *corev1.Node) bool {
	out := false
	for _, t := range node.Spec.Taints {
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		since := node.CreationTimestamp.Time
		if t.TimeAdded != nil {
			since = t.TimeAdded.Time
		}
		end, forever := toleratesUntil(pod, t, since)
		out = out || !forever && k.isDue(end)
	}
	return out
}

// toleratesUntil is when the pod stops tolerating a taint that was added at since. The
// longest of its tolerations counts.
func toleratesUntil(pod *corev1.Pod, t corev1.Taint, since time.Time) (end time.Time, forever bool) {
	end = since
	for _, toleration := range pod.Spec.Tolerations {
		if !toleration.ToleratesTaint(logr.Discard(), &t, false) {
			continue
		}
		if toleration.TolerationSeconds == nil {
			return end, true
		}
		if until := since.Add(time.Duration(*toleration.TolerationSeconds) * time.Second); until.After(end) {
			end = until
		}
	}
	return end, false
}
