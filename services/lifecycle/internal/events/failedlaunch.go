package events

import (
	"maps"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Events about failed launches on pods: Karpenter's rate (InsufficientCapacityErrorPodRateLimiter in
// pkg/controllers/nodeclaim/lifecycle/events.go).
const (
	failedPodsPerSecond = 5
	failedPodsBurst     = 10
)

// expectedRetention is how long pods are stored after their plan. The launch of a NodeClaim ends before.
const expectedRetention = 15 * time.Minute

// expectedPods are the pods that a plan expects on a NodeClaim.
type expectedPods struct {
	planned time.Time
	pods    []expectedPod
}

type expectedPod struct {
	key cluster.Key
	uid types.UID
}

// recordExpected records the pods that a plan expects on NodeClaims, instead of those of earlier plans.
func (m *Publisher) recordExpected(plan planning.Plan, now time.Time) {
	maps.DeleteFunc(m.expected, func(_ string, e expectedPods) bool { return now.Sub(e.planned) > expectedRetention })
	fresh := map[string]expectedPods{}
	for _, n := range plan.Nominations {
		if n.Claim != "" && n.Pod.Buffer == "" {
			pod := expectedPod{cluster.Key{Namespace: n.Namespace, Name: n.Pod.Name}, types.UID(n.Pod.UID)}
			fresh[n.Claim] = expectedPods{now, append(fresh[n.Claim].pods, pod)}
		}
	}
	if m.expected == nil {
		m.expected = map[string]expectedPods{}
	}
	maps.Copy(m.expected, fresh)
}

// ReportFailedPods returns the Events on the pods that were expected on a NodeClaim whose launch found
// no capacity. find returns a pod, nil if it does not exist. Pods that are bound, ended or being deleted
// have no Event, and neither have pods beyond Karpenter's rate.
func (m *Publisher) ReportFailedPods(claim, why string, find func(cluster.Key) *corev1.Pod, now time.Time) []effect.Effect {
	m.failing.Lock()
	defer m.failing.Unlock()
	if m.failedPods == nil {
		m.failedPods = rate.NewLimiter(failedPodsPerSecond, failedPodsBurst)
	}
	var out []effect.Effect
	for _, p := range m.expected[claim].pods {
		pod := find(p.key)
		if pod == nil || pod.UID != p.uid || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || !m.failedPods.AllowN(now, 1) {
			continue
		}
		out = append(out, InsufficientCapacity.About(cluster.Pods, pod, now, "NodeClaim %s nominated for this pod failed to launch: %s", claim, why))
	}
	return out
}
