package memworkload

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

const replicaSetController = "replicaset-controller"

// replicaSet is the ReplicaSet of a Deployment's template. It exists only in owner
// references.
type replicaSet struct {
	name       string
	uid        types.UID
	hash       string
	deployment types.UID
}

// syncDeployments keeps as many pods as wanted, and removes those of
// Deployments that are gone.
func (k *Kubernetes) syncDeployments(ctx context.Context) error {
	bySet := map[types.UID][]*corev1.Pod{}
	for _, pod := range k.pods {
		if owner := metav1.GetControllerOf(pod); owner != nil && isActive(pod) {
			bySet[owner.UID] = append(bySet[owner.UID], pod)
		}
	}
	alive := map[types.UID]bool{}
	for _, deployment := range k.deployments() {
		alive[deployment.UID] = true
		if err := k.syncDeployment(ctx, deployment, bySet); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.sets)) {
		if alive[k.sets[id].deployment] {
			continue
		}
		for _, pod := range bySet[id] {
			if err := k.removePod(ctx, replicaSetController, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Kubernetes) syncDeployment(ctx context.Context, d *appsv1.Deployment, bySet map[types.UID][]*corev1.Pod) error {
	if d.DeletionTimestamp != nil {
		return nil
	}
	set, err := k.currentReplicaSet(d)
	if err != nil {
		return err
	}
	want := 1
	if d.Spec.Replicas != nil {
		want = int(*d.Spec.Replicas)
	}
	current, old := bySet[set.uid], k.podsOfOldSets(d, set, bySet)
	for range want - len(current) {
		if err := k.createObject(ctx, replicaSetController, k.newReplica(d, set)); err != nil {
			return err
		}
	}
	// One old pod is deleted for each new pod that becomes ready.
	surplus := pickPodsToDelete(current, len(current)-want)
	surplus = append(surplus, pickPodsToDelete(old, len(old)-(want-countReady(current)))...)
	for _, pod := range surplus {
		if err := k.removePod(ctx, replicaSetController, pod); err != nil {
			return err
		}
	}
	return k.updateDeploymentStatus(ctx, d, current, old)
}

// currentReplicaSet returns the ReplicaSet of the Deployment's current template.
func (k *Kubernetes) currentReplicaSet(d *appsv1.Deployment) (replicaSet, error) {
	hash, err := hashOf(d.Spec.Template)
	if err != nil {
		return replicaSet{}, err
	}
	set := replicaSet{name: d.Name + "-" + hash, uid: uid(string(d.UID), hash), hash: hash, deployment: d.UID}
	k.sets[set.uid] = set
	return set, nil
}

// podsOfOldSets returns the pods of the Deployment's earlier templates.
func (k *Kubernetes) podsOfOldSets(d *appsv1.Deployment, now replicaSet, bySet map[types.UID][]*corev1.Pod) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, id := range slices.Sorted(maps.Keys(k.sets)) {
		if set := k.sets[id]; set.deployment == d.UID && set.uid != now.uid {
			pods = append(pods, bySet[id]...)
		}
	}
	return pods
}

// newReplica returns a new pod of a ReplicaSet.
func (k *Kubernetes) newReplica(d *appsv1.Deployment, set replicaSet) *corev1.Pod {
	pod := podFromTemplate(d.Spec.Template)
	pod.Namespace, pod.Name = d.Namespace, k.attempt(set.name, string(set.uid))
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = set.hash
	pod.OwnerReferences = []metav1.OwnerReference{memcluster.OwnerReferenceTo("apps/v1", "ReplicaSet", set.name, set.uid)}
	return pod
}

func podFromTemplate(template corev1.PodTemplateSpec) *corev1.Pod {
	copied := template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: copied.ObjectMeta, Spec: copied.Spec}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	return pod
}

func (k *Kubernetes) updateDeploymentStatus(ctx context.Context, d *appsv1.Deployment, current, old []*corev1.Pod) error {
	next := d.DeepCopy()
	ready := int32(countReady(current) + countReady(old))
	total := int32(len(current) + len(old))
	next.Status.ObservedGeneration = d.Generation
	next.Status.Replicas, next.Status.UpdatedReplicas = total, int32(len(current))
	next.Status.ReadyReplicas, next.Status.AvailableReplicas = ready, ready
	next.Status.UnavailableReplicas = total - ready
	if equality.Semantic.DeepEqual(d.Status, next.Status) {
		return nil
	}
	return k.setStatus(ctx, "deployment-controller", next)
}

// pickPodsToDelete returns n pods in the order in which a ReplicaSet deletes them.
func pickPodsToDelete(pods []*corev1.Pod, n int) []*corev1.Pod {
	if n <= 0 {
		return nil
	}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			compareBools(a.Spec.NodeName != "", b.Spec.NodeName != ""),
			compareBools(memcluster.IsReady(a), memcluster.IsReady(b)),
			cmp.Compare(deletionCost(a), deletionCost(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return pods[:min(n, len(pods))]
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func deletionCost(pod *corev1.Pod) int {
	cost, err := strconv.Atoi(pod.Annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0
	}
	return cost
}

func countReady(pods []*corev1.Pod) int {
	n := 0
	for _, pod := range pods {
		if memcluster.IsReady(pod) {
			n++
		}
	}
	return n
}

// isActive reports whether a pod counts as a replica.
func isActive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !hasEnded(pod) }

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
