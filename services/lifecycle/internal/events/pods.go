package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// maxFailedPods is how many FailedScheduling Events a plan publishes.
	maxFailedPods = 100
	// maxNominatedPods is how many Nominated Events a plan publishes: Karpenter's burst,
	// PodNominationRateLimiter in pkg/controllers/provisioning/scheduling/events.go.
	maxNominatedPods = 10
	// maxTextBytes is where reasons are truncated, in bytes: an Event's note has 1 kB.
	maxTextBytes = 990
)

// Publisher limits the Events about pods and nodes. It stores recent Events. The zero value has
// none.
type Publisher struct {
	failed, nominated map[string]time.Time
	// kept is the last Event of each reason about each NodeClaim whose node is not disrupted.
	kept map[keptKey]keptEvent
	// expected are the pods that plans expect on NodeClaims, by the name of the claim.
	expected map[string]expectedPods
	// failedPods limits the Events about failed launches on pods. Launch results are handled concurrently.
	failedPods *rate.Limiter
	failing    sync.Mutex
}

// ReportPods returns the Events on the pods of a plan. launched reports whether a claim exists by
// now, because admission may have rejected it.
func (m *Publisher) ReportPods(plan planning.Plan, launched func(claim string) bool, now time.Time) []effect.Effect {
	m.failed = pruneExpired(m.failed, FailedScheduling.RepeatAfter, now)
	m.nominated = pruneExpired(m.nominated, RepeatAfter, now)
	m.recordExpected(plan, now)
	out := m.unplacedEvents(plan.Unplaced, now)
	published := 0
	for _, n := range plan.Nominations {
		if published == maxNominatedPods {
			break
		}
		if n.Pod.Buffer != "" || n.Claim != "" && !launched(n.Claim) || !recordOnce(m.nominated, n.Pod.UID, now) {
			continue
		}
		published++
		out = append(out, Nominated.About(cluster.Pods, podObject(n.Namespace, n.Pod), now, "Pod should schedule on: %s", placementText(n)))
	}
	return out
}

// unplacedEvents takes the classes in turns, the oldest pods of each first, so that a large class
// does not delay a small one.
func (m *Publisher) unplacedEvents(classes []planning.UnplacedPods, now time.Time) []effect.Effect {
	var out []effect.Effect
	rest := make([][]planning.PodRef, len(classes))
	for i, class := range classes {
		if rejectionText(class.Rejections) == "" {
			continue
		}
		rest[i] = slices.DeleteFunc(slices.Clone(class.Pods), func(p planning.PodRef) bool {
			_, known := m.failed[p.UID]
			return known || p.Buffer != ""
		})
		slices.SortStableFunc(rest[i], func(a, b planning.PodRef) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
		})
	}
	for left := true; left; {
		left = false
		for i, class := range classes {
			if len(out) == maxFailedPods {
				return out
			}
			if len(rest[i]) == 0 {
				continue
			}
			next := rest[i][0]
			rest[i], left = rest[i][1:], true
			recordOnce(m.failed, next.UID, now)
			out = append(out, FailedScheduling.About(cluster.Pods, podObject(class.Namespace, next), now, "Failed to schedule pod, %s", rejectionText(class.Rejections)))
		}
	}
	return out
}

// UnusableNodePools returns the NodePools of a plan without a compatible instance type, with the
// plan's reason.
func UnusableNodePools(plan planning.Plan) map[string]string {
	out := map[string]string{}
	for _, class := range plan.Unplaced {
		for _, r := range class.Rejections {
			if r.LacksInstanceTypes {
				out[r.NodePool] = r.Detail
			}
		}
	}
	return out
}

// rejectionText joins the reasons of all pools. A pod that was not tried has no reason: the next
// batch tries it.
func rejectionText(rejections []planning.Rejection) string {
	var parts []string
	for _, r := range rejections {
		switch {
		case r.Rule == planning.RuleBudget:
		case r.NodePool == "":
			parts = append(parts, r.Detail)
		default:
			parts = append(parts, r.NodePool+": "+r.Detail)
		}
	}
	return fault.Truncate(strings.Join(parts, "; "), maxTextBytes)
}

func placementText(n planning.Nomination) string {
	var parts []string
	if n.Claim != "" {
		parts = append(parts, "nodeclaim/"+n.Claim)
	}
	if n.Node != "" {
		parts = append(parts, "node/"+n.Node)
	}
	return strings.Join(parts, ", ")
}

func podObject(namespace string, ref planning.PodRef) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name, UID: types.UID(ref.UID)}}
}

// recordOnce reports whether a pod had no recent Event, and records one.
func recordOnce(published map[string]time.Time, uid string, now time.Time) bool {
	if _, known := published[uid]; known {
		return false
	}
	published[uid] = now
	return true
}

// pruneExpired drops pods that may get an Event again.
func pruneExpired(published map[string]time.Time, every time.Duration, now time.Time) map[string]time.Time {
	if published == nil {
		return map[string]time.Time{}
	}
	maps.DeleteFunc(published, func(_ string, at time.Time) bool { return now.Sub(at) >= every })
	return published
}
