package podspec

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Budgets are the PodDisruptionBudgets of a cluster, read once for many pods.
type Budgets struct{ byNamespace map[string][]budget }

// budget is what of a PodDisruptionBudget decides.
type budget struct {
	name     string
	selector labels.Selector
	// none is set while no further pod may go, and never when none ever may.
	none, never bool
	// unready is set when pods that are not ready may always go.
	unready bool
}

// NewBudgets reads them. One whose selector does not parse covers every pod of
// its namespace, and no other: nobody can say whom it was meant to protect.
func NewBudgets(list []*policyv1.PodDisruptionBudget) Budgets {
	out := Budgets{byNamespace: map[string][]budget{}}
	for _, pdb := range list {
		one := budget{
			name: pdb.Namespace + "/" + pdb.Name, none: pdb.Status.DisruptionsAllowed == 0, never: never(pdb.Spec),
		}
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil {
			selector, one.never = labels.Everything(), true
		}
		one.selector = selector
		if policy := pdb.Spec.UnhealthyPodEvictionPolicy; policy != nil {
			one.unready = *policy == policyv1.AlwaysAllow
		}
		out.byNamespace[pdb.Namespace] = append(out.byNamespace[pdb.Namespace], one)
	}
	return out
}

// never reports whether a budget lets no pod go whatever the cluster is like. A
// minAvailable that merely equals the number of replicas does not count, as with
// Karpenter.
func never(spec policyv1.PodDisruptionBudgetSpec) bool {
	if limit := spec.MaxUnavailable; limit != nil {
		return *limit == intstr.FromInt32(0) || limit.Type == intstr.String && limit.StrVal == "0%"
	}
	return spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.String && spec.MinAvailable.StrVal == "100%"
}

// Blocked names the budget that keeps a pod from being evicted now, as
// namespace/name, or is empty. fully says that it will go on doing so until
// somebody changes it, as do two budgets that cover one pod: the Eviction API
// refuses those. A pod that no drain would ask to be evicted is not blocked.
func (b Budgets) Blocked(pod *corev1.Pod, now time.Time) (key string, fully bool) {
	if !evictable(pod, now) {
		return "", false
	}
	var found *budget
	for i := range b.byNamespace[pod.Namespace] {
		one := &b.byNamespace[pod.Namespace][i]
		if !one.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if found != nil {
			return found.name, true
		}
		found = one
	}
	if found == nil || found.unready && unready(pod) || !found.none && !found.never {
		return "", false
	}
	return found.name, found.never
}

// evictable reports whether a drain would ask for the pod's eviction.
func evictable(pod *corev1.Pod, now time.Time) bool {
	if ended(pod) || pod.DeletionTimestamp != nil || static(pod) || toleratesDisruption(pod) {
		return false
	}
	_, protected, _ := Protected(pod, now)
	return !protected
}

// toleratesDisruption reports whether a pod means to stay until its node is gone.
func toleratesDisruption(pod *corev1.Pod) bool {
	taint := karpenter.DisruptedTaint()
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Background(), &taint, false)
	})
}

func unready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
	})
}
