package termination

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

const (
	// BlockerPatience is how long a pod may block a drain before it is reported. Most
	// PodDisruptionBudgets allow the eviction sooner.
	BlockerPatience = 15 * time.Second
	// maxNamedPods is how many pods a message names.
	maxNamedPods = 5
)

// BlockedDrain is the input of FindBlockers.
type BlockedDrain struct {
	// Pods are the pods of the group that is evicted now.
	Pods  []*corev1.Pod
	Began time.Time
	// Budgets returns the PodDisruptionBudgets of a namespace.
	Budgets func(namespace string) []*policyv1.PodDisruptionBudget
	// EvictionResult returns since when requests to remove the pod are rejected, and the error; nil
	// if the pod is not rejected.
	EvictionResult func(pod *corev1.Pod) (since time.Time, refusal error)
}

// DrainBlocker is a pod that blocks a drain.
type DrainBlocker struct {
	Pod cluster.Key
	// Owner is the pod's controller, as "Deployment web"; empty without a controller.
	Owner string
	// Why is the reason, with the names of budgets.
	Why   string
	Since time.Time
}

func (b DrainBlocker) String() string {
	if b.Owner == "" {
		return "pod " + b.Pod.String() + " " + b.Why
	}
	return "pod " + b.Pod.String() + " of " + b.Owner + " " + b.Why
}

// FindBlockers returns the pods that have blocked the drain for longer than BlockerPatience, the
// oldest first.
func FindBlockers(d BlockedDrain, now time.Time) []DrainBlocker {
	var out []DrainBlocker
	for _, pod := range d.Pods {
		why, since := d.blockReason(pod, now)
		if why != "" && now.Sub(since) >= BlockerPatience {
			out = append(out, DrainBlocker{Pod: cluster.KeyOf(pod), Owner: PodOwner(pod), Why: why, Since: since})
		}
	}
	slices.SortFunc(out, func(a, b DrainBlocker) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.Pod.String(), b.Pod.String())
	})
	return out
}

// DescribeBlockers describes the first few blockers.
func DescribeBlockers(blockers []DrainBlocker) string {
	words := make([]string, 0, maxNamedPods+1)
	for i, b := range blockers {
		if i == maxNamedPods {
			words = append(words, fmt.Sprintf("and %d more", len(blockers)-maxNamedPods))
			break
		}
		words = append(words, b.String())
	}
	return strings.Join(words, "; ")
}

// blockReason returns why the pod is not removed, and since when; "" if nothing blocks it.
func (d BlockedDrain) blockReason(pod *corev1.Pod, now time.Time) (string, time.Time) {
	if pod.DeletionTimestamp != nil {
		return terminatingReason(pod), pod.DeletionTimestamp.Time
	}
	if until, active, _ := podspec.Protected(pod, now); active {
		return protectedReason(until), d.Began
	}
	since, refusal := d.EvictionResult(pod)
	switch {
	case refusal == nil:
		return "", since
	case fault.Is(refusal, fault.Throttled, fault.Invalid):
		if budgets := d.matchingBudgets(pod); len(budgets) > 0 {
			return budgetReason(budgets), since
		}
	}
	return "cannot be evicted: " + refusal.Error(), since
}

// terminatingReason returns why a terminating pod is late. Its DeletionTimestamp includes the
// grace period.
func terminatingReason(pod *corev1.Pod) string {
	if len(pod.Finalizers) > 0 {
		return "is past its grace period and has the finalizer " + strings.Join(pod.Finalizers, ", ")
	}
	return "has not ended within its grace period"
}

func protectedReason(until time.Time) string {
	words := "must not be disrupted: it has the annotation " + karpenter.DoNotDisruptAnnotationKey
	if until.IsZero() {
		return words
	}
	return words + " until " + until.UTC().Format(time.RFC3339)
}

// matchingBudgets returns the budgets that select the pod.
func (d BlockedDrain) matchingBudgets(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, b := range d.Budgets(pod.Namespace) {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

func budgetReason(budgets []*policyv1.PodDisruptionBudget) string {
	if len(budgets) == 1 {
		b := budgets[0]
		return fmt.Sprintf("is protected by PodDisruptionBudget %s, which allows %d disruptions: %d pods must be healthy, and %d of %d are",
			b.Name, b.Status.DisruptionsAllowed, b.Status.DesiredHealthy, b.Status.CurrentHealthy, b.Status.ExpectedPods)
	}
	var names []string
	for _, b := range budgets {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("is covered by %d PodDisruptionBudgets, %s, and the Eviction API supports only one: change their selectors",
		len(names), strings.Join(names, " and "))
}

// PodOwner returns the pod's controller, or the Deployment of its ReplicaSet.
func PodOwner(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return ""
	}
	hash := pod.Labels["pod-template-hash"]
	if deployment, found := strings.CutSuffix(owner.Name, "-"+hash); owner.Kind == "ReplicaSet" && hash != "" && found {
		return "Deployment " + deployment
	}
	return owner.Kind + " " + owner.Name
}
