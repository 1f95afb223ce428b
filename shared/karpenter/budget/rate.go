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

// SpentAnnotation is where lifecycle writes on a NodePool, as JSON, which disruptions have
// begun lately, where the pool asks for a rate (policy.BudgetPerHour).
const SpentAnnotation = "joist.sh/spent-budget"

// rateWindow is how long a disruption counts, and recordedMax how many nodes are remembered
// at most: annotations are of bounded size.
const (
	rateWindow  = time.Hour
	recordedMax = 1000
)

// Spent is a disruption that has begun.
type Spent struct {
	Proposal string    `json:"proposal"`
	At       time.Time `json:"at"`
	Nodes    int       `json:"nodes"`
}

// Rate is how many nodes of a pool may begin to go within any hour, whatever the reason,
// and which have. The zero value is no bound.
type Rate struct {
	isLimited bool
	limit     int
	spent     []Spent
}

// ReadRate reads the rate of a pool of so many nodes. On error none of its nodes may begin
// to go: what cannot be read was meant to hold something back, and a memory that cannot
// be read might be of anything.
func ReadRate(pool *karpenter.NodePool, nodes int) (Rate, error) {
	asked, err := policy.ReadBudgets(pool.Annotations)
	if err != nil || !asked.PerHour.IsSet() {
		return Rate{isLimited: err != nil}, err
	}
	r := Rate{isLimited: true, limit: min(asked.PerHour.CountOf(nodes), recordedMax)}
	if text := pool.Annotations[SpentAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &r.spent); err != nil {
			return Rate{isLimited: true}, fmt.Errorf("annotation %s cannot be read, which remembers what has gone: take it off, and an hour begins anew", SpentAnnotation)
		}
	}
	return r, nil
}

// IsLimited reports whether the pool asks for a rate.
func (r Rate) IsLimited() bool { return r.isLimited }

// Remaining is how many more may begin to go at now; Unbounded where nobody asks.
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

// recentDisruptions is what still counts. What is said to begin later than now counts as well: a
// clock that was put back opens nothing.
func (r Rate) recentDisruptions(now time.Time) []Spent {
	return slices.DeleteFunc(slices.Clone(r.spent), func(s Spent) bool { return !s.At.After(now.Add(-rateWindow)) })
}

// Explain says in words what bounds the pool.
func (r Rate) Explain(now time.Time) string {
	out := fmt.Sprintf("no more than %d of its nodes may begin to go in an hour, by its annotation %s", r.limit, policy.BudgetPerHour)
	if all := r.recentDisruptions(now); len(all) > 0 {
		first := slices.MinFunc(all, func(a, b Spent) int { return a.At.Compare(b.At) })
		out += "; the next may at " + first.At.Add(rateWindow).UTC().Format(time.RFC3339)
	}
	return out
}

// Reserve lets so many nodes of a proposal begin to go at now; false where the rate has no
// room for them, and then nothing is spent. A proposal counts once within the
// hour, however often it begins.
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

// Text is what is to be remembered on the pool, as SpentAnnotation; "" where nothing is.
func (r Rate) Text() string {
	if !r.isLimited || len(r.spent) == 0 {
		return ""
	}
	text, err := json.Marshal(r.spent)
	if err != nil {
		return "" // Texts, times and numbers always can be written.
	}
	return string(text)
}
