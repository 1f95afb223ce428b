// Package registrationhealth says whether what a NodePool launches becomes nodes.
//
// It keeps the last four launches of a pool and how they ended, on the pool
// itself, so that a process that starts knows what the one before it saw. It is
// pure, and looks at what stands on the claims rather than at what happens: the
// same claim seen twice, or seen late, counts once.
//
// The invariants:
//
//   - A ring speaks of one generation of the pool and of its node class; when
//     either changes, what was before it says nothing any more.
//   - A shortage is no failure: its claims never come to a timeout.
package registrationhealth

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// HistoryAnnotation is where the ring is kept, on the NodePool.
	HistoryAnnotation = planning.LaunchesAnnotation
	// HistorySize is how many launches count.
	HistorySize = 4
	// UnhealthyFailures is how many of them must have failed.
	UnhealthyFailures = 2
)

// History is how the last launches ended, oldest first.
type History planning.Launches

// Launch is how one launch ended.
type Launch = planning.Launch

// ReadHistory reads the pool's ring. One that is of another generation, or that nobody can
// read, begins anew; one that was never written takes over what the pool's
// condition says, which Karpenter or an earlier Joist may have found.
func ReadHistory(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, now time.Time) History {
	fresh := History{Pool: pool.Generation, Class: class.Generation, Since: now.UTC()}
	if _, written := pool.Annotations[HistoryAnnotation]; !written {
		fresh.Last = inherited(pool, class, now)
		return fresh
	}
	launches, ok := planning.LaunchesOf(pool)
	ring := History(launches)
	if !ok || ring.Pool != pool.Generation || ring.Class != class.Generation {
		return fresh
	}
	return ring
}

// inherited is the shortest past that explains the pool's condition.
func inherited(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, now time.Time) []Launch {
	before, found := pool.Status.Conditions.Get(karpenter.ConditionTypeNodeRegistrationHealthy)
	if !found || before.ObservedGeneration != pool.Generation || pool.Status.NodeClassObservedGeneration != class.Generation {
		return nil
	}
	switch before.Status {
	case metav1.ConditionTrue:
		return []Launch{{At: now.UTC(), OK: true}}
	case metav1.ConditionFalse:
		failed := Launch{At: now.UTC(), Reason: before.Reason, Message: before.Message}
		return slices.Repeat([]Launch{failed}, UnhealthyFailures)
	}
	return nil
}

// WithOutcomes is the ring with what has become of the pool's claims since. A ring of
// successes stays as it is while there are only more of them, for they say
// nothing new, and a pool that grows fast would be written at each look.
func (r History) WithOutcomes(pool *karpenter.NodePool, claims []*karpenter.NodeClaim) History {
	known := map[types.UID]bool{}
	for _, try := range r.Last {
		known[try.Claim] = true
	}
	last := slices.Clone(r.Last)
	for _, c := range claims {
		if try, ended := end(c); ended && !known[c.UID] && try.At.After(r.Since) && owned(c, pool) {
			last = append(last, try)
		}
	}
	slices.SortStableFunc(last, func(a, b Launch) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Claim, b.Claim))
	})
	last = last[max(0, len(last)-HistorySize):]
	if len(r.Last) < HistorySize || failures(r.Last)+failures(last) > 0 {
		r.Last = last
	}
	return r
}

func failures(tries []Launch) int {
	n := 0
	for _, try := range tries {
		if !try.OK {
			n++
		}
	}
	return n
}

// owned reports whether the claim was made of this very pool, not by hand nor of
// an earlier one of its name.
func owned(c *karpenter.NodeClaim, pool *karpenter.NodePool) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "NodePool" && o.UID == pool.UID
	})
}

// end says how the claim's launch ended, if it has. A failure's time is that of
// the timeout, whenever it was found, so that it is the same at each look.
func end(c *karpenter.NodeClaim) (Launch, bool) {
	registered, _ := c.Status.Conditions.Get(karpenter.ConditionTypeRegistered)
	if registered.Status == metav1.ConditionTrue {
		return Launch{Claim: c.UID, At: registered.LastTransitionTime.UTC(), OK: true}, true
	}
	try := Launch{Claim: c.UID, Reason: "RegistrationFailed", Message: "Failed to register node"}
	switch c.Annotations[nodeclaim.FailedAnnotation] {
	case nodeclaim.FailedLaunch:
		try.At = c.CreationTimestamp.Add(nodeclaim.LaunchTimeout).UTC()
		launched, _ := c.Status.Conditions.Get(karpenter.ConditionTypeLaunched)
		try.Reason, try.Message = cmp.Or(launched.Reason, "LaunchFailed"), launched.Message
	case nodeclaim.FailedRegistration:
		try.At, try.Image = c.CreationTimestamp.Add(nodeclaim.RegistrationTimeout).UTC(), c.Status.ImageID
	default:
		return Launch{}, false
	}
	return try, true
}

// Encode is the ring as it is kept.
func (r History) Encode() string {
	text, err := json.Marshal(r)
	if err != nil {
		// There is nothing in it that JSON cannot carry.
		return ""
	}
	return string(text)
}

// Condition is NodeRegistrationHealthy. before is what it was: a pool that stays
// unhealthy keeps the reason that made it so.
func (r History) Condition(before metav1.Condition) metav1.Condition {
	const kind = karpenter.ConditionTypeNodeRegistrationHealthy
	next := metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: karpenter.ReasonAwaitingReconciliation,
		Message: "object is awaiting reconciliation", ObservedGeneration: r.Pool}
	switch failed := failures(r.Last); {
	case failed >= UnhealthyFailures && before.Status == metav1.ConditionFalse && before.ObservedGeneration == r.Pool:
		next.Status, next.Reason, next.Message = before.Status, before.Reason, before.Message
	case failed >= UnhealthyFailures:
		last := r.Last[lastFailure(r.Last)]
		next.Status, next.Reason, next.Message = metav1.ConditionFalse, last.Reason, last.Message
	case failed < len(r.Last):
		next.Status, next.Reason, next.Message = metav1.ConditionTrue, kind, ""
	}
	return next
}

func lastFailure(tries []Launch) int {
	i := len(tries) - 1
	for tries[i].OK {
		i--
	}
	return i
}
