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

// Budgets are the PodDisruptionBudgets of a cluster, read once for many pods.
type Budgets struct{ byNamespace map[string]*budgets }

// budgets are those of a namespace, in their order. A pod is compared with the ones
// that ask for a label which it has, and with those that ask for none: there may be
// as many budgets as there are workloads.
type budgets struct {
	all      []budget
	loose    []int
	labelled map[pair][]int
}

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
	out := Budgets{byNamespace: map[string]*budgets{}}
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
		out.add(pdb, one, err == nil)
	}
	return out
}

// add files a budget under one of the labels that it asks for, if it does.
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

// covering finds the first of those that select a pod, and how many do.
func (b *budgets) covering(pod *corev1.Pod) (first *budget, count int) {
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
	if _, protected, _ := Protected(pod, now); protected {
		return "", false
	}
	return b.Refuses(pod)
}

// Refuses is what Blocked says of the pod when nothing else protects it, so that it
// holds for as long as pod and budgets stay as they are.
func (b Budgets) Refuses(pod *corev1.Pod) (key string, fully bool) {
	of := b.byNamespace[pod.Namespace]
	if of == nil || !drainable(pod) {
		return "", false
	}
	found, count := of.covering(pod)
	switch {
	case count > 1:
		return found.name, true
	case count == 0 || found.unready && unready(pod) || !found.none && !found.never:
		return "", false
	}
	return found.name, found.never
}

// drainable reports whether a drain would ask for the pod's eviction, once nothing
// protects it.
func drainable(pod *corev1.Pod) bool {
	return !ended(pod) && pod.DeletionTimestamp == nil && !static(pod) && !toleratesDisruption(pod)
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
