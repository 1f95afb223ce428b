// Package blocker says what keeps a node from being drained: which pod, why, and
// whom to talk to (user-asks 9). It is pure.
package blocker

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
	"github.com/joist-autoscaler/joist/shared/podspec"
)

const (
	// Patience is how long a pod may be in the way before it is named. Most budgets
	// give way sooner.
	Patience = 15 * time.Second
	// named is how many pods a sentence names.
	named = 5
)

// Drain is what there is to know of a drain.
type Drain struct {
	// Pods are those whose turn it is to go.
	Pods  []*corev1.Pod
	Began time.Time
	// Budgets gives the PodDisruptionBudgets of a namespace.
	Budgets func(namespace string) []*policyv1.PodDisruptionBudget
	// Answer is what the last request to remove a pod came to, nil where it was not
	// refused, and since when it is.
	Answer func(pod *corev1.Pod) (since time.Time, refusal error)
}

// Blocker is a pod that is in the way.
type Blocker struct {
	Pod cluster.Key
	// Owner is who keeps the pod, as "Deployment web"; empty for nobody.
	Owner string
	// Why says what stands in the way, with the budgets' names.
	Why   string
	Since time.Time
}

func (b Blocker) String() string {
	if b.Owner == "" {
		return "pod " + b.Pod.String() + " " + b.Why
	}
	return "pod " + b.Pod.String() + " of " + b.Owner + " " + b.Why
}

// Of lists what has been in the way for longer than Patience, the oldest first.
func Of(d Drain, now time.Time) []Blocker {
	var out []Blocker
	for _, pod := range d.Pods {
		why, since := d.why(pod, now)
		if why != "" && now.Sub(since) >= Patience {
			out = append(out, Blocker{Pod: cluster.KeyOf(pod), Owner: Owner(pod), Why: why, Since: since})
		}
	}
	slices.SortFunc(out, func(a, b Blocker) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.Pod.String(), b.Pod.String())
	})
	return out
}

// Sentence names the first few.
func Sentence(blockers []Blocker) string {
	words := make([]string, 0, named+1)
	for i, b := range blockers {
		if i == named {
			words = append(words, fmt.Sprintf("and %d more", len(blockers)-named))
			break
		}
		words = append(words, b.String())
	}
	return strings.Join(words, "; ")
}

// why says what is in the way of the pod's end, if anything is.
func (d Drain) why(pod *corev1.Pod, now time.Time) (string, time.Time) {
	if pod.DeletionTimestamp != nil {
		return leaving(pod), pod.DeletionTimestamp.Time
	}
	if until, active, _ := podspec.Protected(pod, now); active {
		return protected(until), d.Began
	}
	since, refusal := d.Answer(pod)
	switch {
	case refusal == nil:
		return "", since
	case fault.Is(refusal, fault.Throttled, fault.Invalid):
		if budgets := d.covering(pod); len(budgets) > 0 {
			return kept(budgets), since
		}
	}
	return "cannot be evicted: " + refusal.Error(), since
}

// leaving is about a pod that was asked to end. Until its grace is over it is not
// late.
func leaving(pod *corev1.Pod) string {
	if len(pod.Finalizers) > 0 {
		return "is past its grace period and is held by the finalizer " + strings.Join(pod.Finalizers, ", ")
	}
	return "has not ended within its grace period"
}

func protected(until time.Time) string {
	words := "must not be disrupted: it has the annotation " + karpenter.DoNotDisruptAnnotationKey
	if until.IsZero() {
		return words
	}
	return words + " until " + until.UTC().Format(time.RFC3339)
}

// covering are the budgets that select the pod.
func (d Drain) covering(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, b := range d.Budgets(pod.Namespace) {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

func kept(budgets []*policyv1.PodDisruptionBudget) string {
	if len(budgets) == 1 {
		b := budgets[0]
		return fmt.Sprintf("is kept by PodDisruptionBudget %s, which allows %d disruptions: it wants %d healthy pods, and %d of %d are",
			b.Name, b.Status.DisruptionsAllowed, b.Status.DesiredHealthy, b.Status.CurrentHealthy, b.Status.ExpectedPods)
	}
	var names []string
	for _, b := range budgets {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("is covered by %d PodDisruptionBudgets, %s, and the Eviction API takes one at most: change their selectors",
		len(names), strings.Join(names, " and "))
}

// Owner is who keeps a pod: its controller, or the Deployment behind a ReplicaSet.
func Owner(pod *corev1.Pod) string {
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
