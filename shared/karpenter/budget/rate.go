package budget

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// SpentAnnotation is the NodePool annotation in which lifecycle stores recent disruptions as JSON, if the pool has a
// rate limit (policy.BudgetPerHour).
const SpentAnnotation = "joist.sh/spent-budget"

// rateWindow is how long a disruption counts, and recordedMax the maximum rate, because annotations are limited in
// size.
const (
	rateWindow  = time.Hour
	recordedMax = 1000
)

// Spent is a disruption that has started.
type Spent struct {
	Proposal string    `json:"proposal"`
	At       time.Time `json:"at"`
	Nodes    int       `json:"nodes"`
}

// Rate limits how many nodes of a pool may start to be disrupted within any hour, for any reason, and has the recent
// disruptions. The zero value is no limit.
type Rate struct {
	isLimited bool
	limit     int
	spent     []Spent
}

// ReadRate reads the rate limit of a pool with that many nodes. On error the limit is 0: an invalid annotation was
// meant to limit disruptions, and an invalid SpentAnnotation may hide any number of them.
func ReadRate(pool *karpenter.NodePool, nodes int) (Rate, error) {
	asked, err := policy.ReadBudgets(pool.Annotations)
	if err != nil || !asked.PerHour.IsSet() {
		return Rate{isLimited: err != nil}, err
	}
	r := Rate{isLimited: true, limit: min(asked.PerHour.CountOf(nodes), recordedMax)}
	if text := pool.Annotations[SpentAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &r.spent); err != nil {
			return Rate{isLimited: true}, fmt.Errorf("annotation %s, the record of recent disruptions, is invalid: remove it to start a new hour", SpentAnnotation)
		}
	}
	return r, nil
}

// IsLimited reports whether the pool has a rate limit.
func (r Rate) IsLimited() bool { return r.isLimited }

// Remaining returns how many more nodes may start to be disrupted at now; Unbounded without a limit.
func (r Rate) Remaining(now time.Time) int {
	if !r.isLimited {
		return math.MaxInt
	}
	left := r.limit
	for _, s := range r.recentDisruptions(now) {
		left -= s.Nodes
	}
	return max(left, 0)
}

// recentDisruptions returns the disruptions that still count. Those in the future also count, so that a clock that
// was set back does not raise the limit.
func (r Rate) recentDisruptions(now time.Time) []Spent {
	return slices.DeleteFunc(slices.Clone(r.spent), func(s Spent) bool { return !s.At.After(now.Add(-rateWindow)) })
}

// Explain describes the pool's limit, and when the next disruption is allowed.
func (r Rate) Explain(now time.Time) string {
	out := fmt.Sprintf("at most %d of its nodes may be disrupted per hour, by its annotation %s", r.limit, policy.BudgetPerHour)
	if all := r.recentDisruptions(now); len(all) > 0 {
		first := slices.MinFunc(all, func(a, b Spent) int { return a.At.Compare(b.At) })
		out += "; the next one may be disrupted at " + first.At.Add(rateWindow).UTC().Format(time.RFC3339)
	}
	return out
}

// Reserve records the start of a proposal's disruptions at now. It returns false and records nothing if the limit
// does not allow that many nodes. A proposal counts once per hour, even if it starts again.
func (r Rate) Reserve(proposal string, nodes int, now time.Time) (Rate, bool) {
	if !r.isLimited || slices.ContainsFunc(r.recentDisruptions(now), func(s Spent) bool { return s.Proposal == proposal && s.Nodes >= nodes }) {
		return r, true
	}
	if nodes > r.Remaining(now) {
		return r, false
	}
	r.spent = append(r.recentDisruptions(now), Spent{Proposal: proposal, At: now.UTC(), Nodes: nodes})
	return r, true
}

// Text returns the value of SpentAnnotation, or "".
func (r Rate) Text() string {
	if !r.isLimited || len(r.spent) == 0 {
		return ""
	}
	text, err := json.Marshal(r.spent)
	if err != nil {
		return "" // Unreachable: these types can always be marshalled.
	}
	return string(text)
}
