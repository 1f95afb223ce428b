package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// mostFailed is how many pods a plan tells that they found no place.
	mostFailed = 100
	// mostNominated is how many it tells where they are expected: upstream's burst,
	// PodNominationRateLimiter in pkg/controllers/provisioning/scheduling/events.go.
	mostNominated = 10
	// mostText is where the reasons are cut, in bytes: an Event's note has 1 kB.
	mostText = 990
)

// Publisher is whom plans told already. Its zero value has told nobody.
type Publisher struct {
	failed, nominated map[string]time.Time
	// kept is the last Event of each reason about each NodeClaim whose node stays.
	kept map[keptKey]keptEvent
}

// ReportPods are the Events on the pods of a plan. launched reports whether a claim
// exists by now: the door may have refused what the plan expected.
func (m *Publisher) ReportPods(plan planning.Plan, launched func(claim string) bool, now time.Time) []effect.Effect {
	m.failed = prune(m.failed, FailedScheduling.RepeatAfter, now)
	m.nominated = prune(m.nominated, RepeatAfter, now)
	out := m.unplaced(plan.Unplaced, now)
	told := 0
	for _, n := range plan.Nominations {
		if told == mostNominated {
			break
		}
		if n.Pod.Buffer != "" || n.Claim != "" && !launched(n.Claim) || !once(m.nominated, n.Pod.UID, now) {
			continue
		}
		told++
		out = append(out, Nominated.About(cluster.Pods, pod(n.Namespace, n.Pod), now, "Pod should schedule on: %s", place(n)))
	}
	return out
}

// unplaced takes the classes in turns, the oldest pods of each first, so that no
// large class keeps a small one waiting.
func (m *Publisher) unplaced(classes []planning.Unplaced, now time.Time) []effect.Effect {
	var out []effect.Effect
	rest := make([][]planning.PodRef, len(classes))
	for i, class := range classes {
		if why(class.Rejections) == "" {
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
			if len(out) == mostFailed {
				return out
			}
			if len(rest[i]) == 0 {
				continue
			}
			next := rest[i][0]
			rest[i], left = rest[i][1:], true
			once(m.failed, next.UID, now)
			out = append(out, FailedScheduling.About(cluster.Pods, pod(class.Namespace, next), now, "Failed to schedule pod, %s", why(class.Rejections)))
		}
	}
	return out
}

// UnusableNodePools names the NodePools of a plan that have no instance type to offer to
// anybody, with what it says of them.
func UnusableNodePools(plan planning.Plan) map[string]string {
	out := map[string]string{}
	for _, class := range plan.Unplaced {
		for _, r := range class.Rejections {
			if r.Barren {
				out[r.NodePool] = r.Detail
			}
		}
	}
	return out
}

// why joins the reasons of all pools. A pod whose turn has not come has none: the
// next batch goes on with it.
func why(rejections []planning.Rejection) string {
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
	text := strings.Join(parts, "; ")
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return text
}

func place(n planning.Nomination) string {
	var parts []string
	if n.Claim != "" {
		parts = append(parts, "nodeclaim/"+n.Claim)
	}
	if n.Node != "" {
		parts = append(parts, "node/"+n.Node)
	}
	return strings.Join(parts, ", ")
}

func pod(namespace string, ref planning.PodRef) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name, UID: types.UID(ref.UID)}}
}

// once reports whether a pod was not told yet, and notes that it is.
func once(told map[string]time.Time, uid string, now time.Time) bool {
	if _, known := told[uid]; known {
		return false
	}
	told[uid] = now
	return true
}

// prune forgets whom may be told again.
func prune(told map[string]time.Time, every time.Duration, now time.Time) map[string]time.Time {
	if told == nil {
		return map[string]time.Time{}
	}
	maps.DeleteFunc(told, func(_ string, at time.Time) bool { return now.Sub(at) >= every })
	return told
}
