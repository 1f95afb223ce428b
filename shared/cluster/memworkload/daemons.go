package memworkload

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

const daemonSetController = "daemonset-controller"

// syncDaemonSets keeps one pod of each DaemonSet on each node that it fits.
func (k *Kubernetes) syncDaemonSets(ctx context.Context) error {
	for _, set := range k.daemonSets() {
		if set.DeletionTimestamp != nil {
			continue
		}
		if err := k.syncDaemonSet(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kubernetes) syncDaemonSet(ctx context.Context, set *appsv1.DaemonSet) error {
	placed := map[string]*corev1.Pod{}
	for _, pod := range k.pods {
		owner := metav1.GetControllerOf(pod)
		if owner != nil && owner.UID == set.UID && isActive(pod) {
			placed[targetOf(pod)] = pod
		}
	}
	var wanted, current, ready int32
	for _, node := range k.nodes {
		pod, running := placed[node.Name]
		start, stay := daemonFits(set, node)
		if start {
			wanted++
		}
		switch {
		case running && !stay:
			if err := k.removePod(ctx, daemonSetController, pod); err != nil {
				return err
			}
		case running:
			current++
			ready += int32(countReady([]*corev1.Pod{pod}))
		case start:
			if err := k.createObject(ctx, daemonSetController, k.newDaemonPod(set, node)); err != nil {
				return err
			}
		}
	}
	return k.updateDaemonSetStatus(ctx, set, wanted, current, ready)
}

// daemonFits reports whether a pod of the set would start on the node, and whether a
// running one stays there. Resources are not considered.
func daemonFits(set *appsv1.DaemonSet, node *corev1.Node) (start, stay bool) {
	pod := podFromTemplate(set.Spec.Template)
	addDaemonTolerations(&pod.Spec)
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return false, false
	}
	return tolerates(pod, node, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
		tolerates(pod, node, corev1.TaintEffectNoExecute)
}

// tolerates reports whether the pod tolerates all the node's taints of these effects.
func tolerates(pod *corev1.Pod, node *corev1.Node, effects ...corev1.TaintEffect) bool {
	_, found := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations,
		func(t *corev1.Taint) bool {
			return slices.Contains(effects, t.Effect)
		}, false)
	return !found
}

// addDaemonTolerations adds the tolerations of every DaemonSet's pod.
func addDaemonTolerations(spec *corev1.PodSpec) {
	add := func(key string, effect corev1.TaintEffect) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
}

// newDaemonPod returns the set's pod for one node. Its node affinity allows only that node,
// and the scheduler binds it.
func (k *Kubernetes) newDaemonPod(set *appsv1.DaemonSet, node *corev1.Node) *corev1.Pod {
	pod := podFromTemplate(set.Spec.Template)
	pod.Namespace, pod.Name = set.Namespace, k.attempt(set.Name, string(set.UID), string(node.UID))
	pod.OwnerReferences = []metav1.OwnerReference{memcluster.OwnerReference(set)}
	addDaemonTolerations(&pod.Spec)
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name},
		}}}},
	}
	return pod
}

// targetOf is the name of the node for which a DaemonSet's pod was created.
func targetOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return pod.Spec.NodeName
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

func (k *Kubernetes) updateDaemonSetStatus(ctx context.Context, set *appsv1.DaemonSet, wanted, current, ready int32) error {
	next := set.DeepCopy()
	next.Status.ObservedGeneration = set.Generation
	next.Status.DesiredNumberScheduled, next.Status.CurrentNumberScheduled = wanted, current
	next.Status.UpdatedNumberScheduled = current
	next.Status.NumberReady, next.Status.NumberAvailable = ready, ready
	next.Status.NumberUnavailable = max(0, wanted-ready)
	if equality.Semantic.DeepEqual(set.Status, next.Status) {
		return nil
	}
	return k.setStatus(ctx, daemonSetController, next)
}
