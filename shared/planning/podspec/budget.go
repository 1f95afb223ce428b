package podspec

import (
	"maps"
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

// Budgets are the PodDisruptionBudgets of a cluster, indexed for use with many pods.
type Budgets struct{ byNamespace map[string]*budgets }

// budgets are the budgets of a namespace, in order. A pod is only compared with budgets that require
// one of its labels, and with budgets that require no label, because a namespace may have a budget for
// every workload.
type budgets struct {
	all      []budget
	loose    []int
	labelled map[pair][]int
}

// budget is the part of a PodDisruptionBudget that matters here.
type budget struct {
	name     string
	selector labels.Selector
	// none is true while no further pod may be evicted, and never if the budget never allows an
	// eviction.
	none, never bool
	// unready is true if pods that are not ready may always be evicted.
	unready bool
}

// NewBudgets indexes the budgets. A budget with an invalid selector matches every pod of its
// namespace and allows no eviction, because its intended pods are unknown.
func NewBudgets(list []*policyv1.PodDisruptionBudget) Budgets {
	out := Budgets{byNamespace: map[string]*budgets{}}
	for _, pdb := range list {
		one := budget{
			name: pdb.Namespace + "/" + pdb.Name, none: pdb.Status.DisruptionsAllowed == 0, never: neverAllowsEviction(pdb.Spec),
		}
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil {
			selector, one.never = labels.Everything(), true
		}
		one.selector = selector
		if policy := pdb.Spec.UnhealthyPodEvictionPolicy; policy != nil {
			one.unready = *policy == policyv1.AlwaysAllow
		}
		out.add(pdb, one, err == nil)
	}
	return out
}

// add indexes a budget by one of the labels that it requires, if any.
func (b Budgets) add(pdb *policyv1.PodDisruptionBudget, one budget, parsed bool) {
	of := b.byNamespace[pdb.Namespace]
	if of == nil {
		of = &budgets{labelled: map[pair][]int{}}
		b.byNamespace[pdb.Namespace] = of
	}
	at := len(of.all)
	of.all = append(of.all, one)
	if !parsed || pdb.Spec.Selector == nil || len(pdb.Spec.Selector.MatchLabels) == 0 {
		of.loose = append(of.loose, at)
		return
	}
	wanted := pdb.Spec.Selector.MatchLabels
	key := slices.Min(slices.Collect(maps.Keys(wanted)))
	of.labelled[pair{key, wanted[key]}] = append(of.labelled[pair{key, wanted[key]}], at)
}

// findCovering returns the first budget that selects a pod, and how many do.
func (b *budgets) findCovering(pod *corev1.Pod) (first *budget, count int) {
	at := len(b.all)
	try := func(list []int) {
		for _, i := range list {
			if b.all[i].selector.Matches(labels.Set(pod.Labels)) {
				at, count = min(at, i), count+1
			}
		}
	}
	try(b.loose)
	for key, value := range pod.Labels {
		try(b.labelled[pair{key, value}])
	}
	if count == 0 {
		return nil, 0
	}
	return &b.all[at], count
}

// neverAllowsEviction reports whether a budget never allows an eviction, in any state of the cluster. A minAvailable
// that merely equals the number of replicas does not count, as in Karpenter.
func neverAllowsEviction(spec policyv1.PodDisruptionBudgetSpec) bool {
	if limit := spec.MaxUnavailable; limit != nil {
		return *limit == intstr.FromInt32(0) || limit.Type == intstr.String && limit.StrVal == "0%"
	}
	return spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.String && spec.MinAvailable.StrVal == "100%"
}

// Blocked returns the budget that prevents a pod's eviction now, as namespace/name, or "". fully is
// true if it does so until a user changes it; two budgets for one pod do so too, because the Eviction
// API rejects that. A pod that a drain would not evict is not blocked.
func (b Budgets) Blocked(pod *corev1.Pod, now time.Time) (key string, fully bool) {
	if _, protected, _ := Protected(pod, now); protected {
		return "", false
	}
	return b.FindBlockingBudget(pod)
}

// FindBlockingBudget is Blocked without the check of do-not-disrupt, so that the result depends only on pod and
// budgets, not on the time.
func (b Budgets) FindBlockingBudget(pod *corev1.Pod) (key string, fully bool) {
	of := b.byNamespace[pod.Namespace]
	if of == nil || !isDrainable(pod) {
		return "", false
	}
	found, count := of.findCovering(pod)
	switch {
	case count > 1:
		return found.name, true
	case count == 0 || found.unready && isUnready(pod) || !found.none && !found.never:
		return "", false
	}
	return found.name, found.never
}

// isDrainable reports whether a drain would evict the pod if nothing protects it.
func isDrainable(pod *corev1.Pod) bool {
	return !hasEnded(pod) && pod.DeletionTimestamp == nil && !IsStatic(pod) && !toleratesDisruption(pod)
}

// toleratesDisruption reports whether a pod tolerates the disrupted taint, so that it stays until its
// node is gone.
func toleratesDisruption(pod *corev1.Pod) bool {
	taint := karpenter.DisruptedTaint()
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Background(), &taint, false)
	})
}

func isUnready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
	})
}
