// Package registrationhealth computes whether the launches of a NodePool result in registered
// nodes.
//
// It stores the results of the last four launches in an annotation of the pool, so that a new
// process has them. It is pure and derives results from the claims: a claim that is read twice, or
// late, counts once.
//
// The invariants:
//   - A history belongs to one generation of the pool and of its node class. When either changes, it
//     starts again.
//   - Insufficient capacity is not a failure, because such claims are deleted before a timeout.
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
	// HistoryAnnotation contains the history, on the NodePool.
	HistoryAnnotation = planning.LaunchHistoryAnnotation
	// HistorySize is the number of launches that count.
	HistorySize = 4
	// UnhealthyFailures is how many of them must have failed.
	UnhealthyFailures = 2
)

// History is the results of the last launches, oldest first.
type History planning.LaunchHistory

// Launch is the result of one launch.
type Launch = planning.LaunchRecord

// ReadHistory reads the pool's history. A history of another generation, or one that cannot be
// parsed, starts again. Without a history it is derived from the pool's condition, which Karpenter
// may have set.
func ReadHistory(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, now time.Time) History {
	fresh := History{PoolGeneration: pool.Generation, ClassGeneration: class.Generation, Since: now.UTC()}
	if _, written := pool.Annotations[HistoryAnnotation]; !written {
		fresh.Records = inheritedLaunches(pool, class, now)
		return fresh
	}
	launches, ok := planning.ReadLaunchHistory(pool)
	ring := History(launches)
	if !ok || ring.PoolGeneration != pool.Generation || ring.ClassGeneration != class.Generation {
		return fresh
	}
	return ring
}

// inheritedLaunches returns the shortest history that explains the pool's condition.
func inheritedLaunches(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, now time.Time) []Launch {
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

// WithOutcomes returns the history with the new results of the pool's claims. More successes do not
// change a full history of successes, because it would be written for each new node.
func (r History) WithOutcomes(pool *karpenter.NodePool, claims []*karpenter.NodeClaim) History {
	known := map[types.UID]bool{}
	for _, try := range r.Records {
		known[try.Claim] = true
	}
	last := slices.Clone(r.Records)
	for _, c := range claims {
		if try, ended := launchOutcome(c); ended && !known[c.UID] && try.At.After(r.Since) && isOwnedBy(c, pool) {
			last = append(last, try)
		}
	}
	slices.SortStableFunc(last, func(a, b Launch) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Claim, b.Claim))
	})
	last = last[max(0, len(last)-HistorySize):]
	if len(r.Records) < HistorySize || countFailures(r.Records)+countFailures(last) > 0 {
		r.Records = last
	}
	return r
}

func countFailures(tries []Launch) int {
	n := 0
	for _, try := range tries {
		if !try.OK {
			n++
		}
	}
	return n
}

// isOwnedBy reports whether this pool owns the claim, not a former pool of that name.
func isOwnedBy(c *karpenter.NodeClaim, pool *karpenter.NodePool) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "NodePool" && o.UID == pool.UID
	})
}

// launchOutcome returns the result of the claim's launch, if it has ended. The time of a failure is
// the time of its timeout, so it is the same in each reconcile.
func launchOutcome(c *karpenter.NodeClaim) (Launch, bool) {
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

// Encode returns the history as JSON.
func (r History) Encode() string {
	text, err := json.Marshal(r)
	if err != nil {
		// All fields can be encoded.
		return ""
	}
	return string(text)
}

// Condition returns NodeRegistrationHealthy. before is the present condition: a pool that stays
// unhealthy keeps its reason.
func (r History) Condition(before metav1.Condition) metav1.Condition {
	const kind = karpenter.ConditionTypeNodeRegistrationHealthy
	next := metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: karpenter.ReasonAwaitingReconciliation,
		Message: "object is awaiting reconciliation", ObservedGeneration: r.PoolGeneration}
	switch failed := countFailures(r.Records); {
	case failed >= UnhealthyFailures && before.Status == metav1.ConditionFalse && before.ObservedGeneration == r.PoolGeneration:
		next.Status, next.Reason, next.Message = before.Status, before.Reason, before.Message
	case failed >= UnhealthyFailures:
		last := r.Records[lastFailure(r.Records)]
		next.Status, next.Reason, next.Message = metav1.ConditionFalse, last.Reason, last.Message
	case failed < len(r.Records):
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
