package budget_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

func poolWithRate(perHour, spent string) *karpenter.NodePool {
	p := &karpenter.NodePool{}
	p.Annotations = map[string]string{}
	for name, text := range map[string]string{policy.BudgetPerHour: perHour, budget.SpentAnnotation: spent} {
		if text != "" {
			p.Annotations[name] = text
		}
	}
	return p
}

func TestHourlyRate(t *testing.T) {
	now := time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)
	const spent = `[{"proposal":"a","at":"2026-11-22T11:00:00Z","nodes":4},{"proposal":"b","at":"2026-11-22T11:00:01Z","nodes":1},{"proposal":"c","at":"2026-11-22T12:30:00Z","nodes":1}]`
	for _, tt := range []struct {
		name, perHour, spent string
		want                 int
		wrong                bool
	}{
		{"no annotation", "", "", budget.Unbounded, false},
		{"annotation removed", "", spent, budget.Unbounded, false},
		{"no disruptions yet", "5", "", 5, false},
		{"only the disruptions of the last hour count", "5", spent, 3, false},
		{"limit reached", "2", spent, 0, false},
		{"limit exceeded", "1", spent, 0, false},
		{"percentage of the nodes, rounded up", "10%", spent, 1, false},
		{"limit of zero", "0", "", 0, false},
		{"invalid annotation", "many", "", 0, true},
		{"invalid record", "5", "[", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := budget.ReadRate(poolWithRate(tt.perHour, tt.spent), 25)
			if got := r.Remaining(now); got != tt.want || (err != nil) != tt.wrong {
				t.Errorf("%d disruptions allowed, %v; want %d", got, err, tt.want)
			}
		})
	}
	r, _ := budget.ReadRate(poolWithRate("2", spent), 25)
	if want := "at most 2 of its nodes may be disrupted per hour, by its annotation joist.sh/budget-per-hour; the next one may be disrupted at 2026-11-22T12:00:01Z"; r.Explain(now) != want {
		t.Errorf("why: %s", r.Explain(now))
	}
}

// Even if the caller crashes and repeats requests, no hour has more disruptions than the limit; the only state is the
// pool's annotation.
func TestNoHourExceedsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(0, 6).Draw(t, "most")
		now := time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)
		type start struct {
			at    time.Time
			nodes int
		}
		begun := map[string]start{}
		text := ""
		for i := range rapid.IntRange(1, 40).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 25).Draw(t, "minutes")) * time.Minute)
			r, err := budget.ReadRate(poolWithRate(strconv.Itoa(most), text), 9)
			if err != nil {
				t.Fatal(err)
			}
			proposal, nodes := fmt.Sprint("p", rapid.IntRange(max(0, i-2), i).Draw(t, "proposal")), rapid.IntRange(1, 3).Draw(t, "nodes")
			if was, again := begun[proposal]; again {
				nodes = was.nodes
			}
			next, may := r.Reserve(proposal, nodes, now)
			if was, again := begun[proposal]; may && (!again || now.Sub(was.at) >= time.Hour) {
				begun[proposal] = start{now, nodes}
			}
			if may {
				text = next.Text()
			}
			for _, from := range begun {
				sum := 0
				for _, s := range begun {
					if d := s.at.Sub(from.at); d >= 0 && d < time.Hour {
						sum += s.nodes
					}
				}
				if sum > most {
					t.Fatalf("%[2]d disruptions within an hour from %[1]s, limit %[3]d", from.at, sum, most)
				}
			}
		}
	})
}
