package budget

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// friday is 12:00 UTC on a Friday.
var friday = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// at returns a budget with a schedule.
func at(nodes, schedule string, lasts time.Duration, reasons ...karpenter.DisruptionReason) karpenter.Budget {
	return karpenter.Budget{Nodes: nodes, Schedule: &schedule, Duration: &metav1.Duration{Duration: lasts}, Reasons: reasons}
}

func always(nodes string, reasons ...karpenter.DisruptionReason) karpenter.Budget {
	return karpenter.Budget{Nodes: nodes, Reasons: reasons}
}

func pool(budgets ...karpenter.Budget) *karpenter.NodePool {
	out := &karpenter.NodePool{}
	out.Spec.Disruption.Budgets = budgets
	return out
}

func TestAllowedDisruptions(t *testing.T) {
	const empty, drifted = karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted
	half := "0 9 * * *"
	for _, tt := range []struct {
		name    string
		budgets []karpenter.Budget
		nodes   int
		now     time.Time
		want    int
		wrong   bool
	}{
		{name: "none", nodes: 10, want: Unbounded},
		{name: "a percentage rounds up", budgets: []karpenter.Budget{always("10%")}, nodes: 11, want: 2},
		{name: "a whole percentage", budgets: []karpenter.Budget{always("10%")}, nodes: 10, want: 1},
		{name: "of one node", budgets: []karpenter.Budget{always("10%")}, nodes: 1, want: 1},
		{name: "of no node", budgets: []karpenter.Budget{always("100%")}, nodes: 0, want: 0},
		{name: "nothing", budgets: []karpenter.Budget{always("0")}, nodes: 10, want: 0},
		{name: "a count may exceed the pool", budgets: []karpenter.Budget{always("7")}, nodes: 2, want: 7},
		{name: "the strictest", budgets: []karpenter.Budget{always("50%"), always("3"), always("4")}, nodes: 10, want: 3},
		{name: "budget of the reason", budgets: []karpenter.Budget{always("5", empty), always("1", drifted)}, nodes: 10, want: 5},
		{name: "only a budget of another reason", budgets: []karpenter.Budget{always("1", drifted)}, nodes: 10, want: Unbounded},
		{name: "within the window", budgets: []karpenter.Budget{at("0", half, 8*time.Hour)}, now: friday, want: 0},
		{name: "as it opens", budgets: []karpenter.Budget{at("0", half, 8*time.Hour)}, now: friday.Add(-3 * time.Hour), want: 0},
		{name: "before it opens", budgets: []karpenter.Budget{at("0", half, 8*time.Hour)}, now: friday.Add(-3*time.Hour - 1), want: Unbounded},
		{name: "as it closes", budgets: []karpenter.Budget{at("0", half, 3*time.Hour)}, now: friday, want: Unbounded},
		{name: "the last moment", budgets: []karpenter.Budget{at("0", half, 3*time.Hour)}, now: friday.Add(-1), want: 0},
		{name: "across midnight", budgets: []karpenter.Budget{at("0", "0 20 * * *", 10*time.Hour)}, now: friday.Add(-8 * time.Hour), want: 0},
		{name: "in UTC, with a clock in another zone", budgets: []karpenter.Budget{at("0", half, 8*time.Hour)},
			now: friday.Add(-3*time.Hour - 1).In(time.FixedZone("east", 9*3600)), want: Unbounded},
		{name: "a name", budgets: []karpenter.Budget{at("0", "@daily", 13*time.Hour)}, now: friday, want: 0},
		{name: "not on weekends", budgets: []karpenter.Budget{at("0", "0 9 * * sat,sun", 8*time.Hour)}, now: friday, want: Unbounded},
		{name: "a schedule that never hits", budgets: []karpenter.Budget{at("0", "0 0 31 2 *", time.Hour)}, now: friday, want: 0},
		{name: "no schedule at all", budgets: []karpenter.Budget{at("5", "", time.Hour)}, now: friday, wrong: true},
		{name: "invalid schedule", budgets: []karpenter.Budget{at("5", "often", time.Hour)}, now: friday, wrong: true},
		{name: "invalid budget of another reason", budgets: []karpenter.Budget{at("5", "often", time.Hour, drifted)}, now: friday, wrong: true},
		{name: "schedule with a time zone", budgets: []karpenter.Budget{at("5", "TZ=Mars/Up 0 9 * * *", time.Hour)}, now: friday, wrong: true},
		{name: "a schedule without a duration", budgets: []karpenter.Budget{{Nodes: "5", Schedule: &half}}, wrong: true},
		{name: "a duration without a schedule", budgets: []karpenter.Budget{{Nodes: "5", Duration: &metav1.Duration{}}}, wrong: true},
		{name: "nodes is not a number", budgets: []karpenter.Budget{always("some")}, wrong: true},
		{name: "empty nodes", budgets: []karpenter.Budget{always("")}, wrong: true},
		{name: "negative nodes", budgets: []karpenter.Budget{always("-1")}, wrong: true},
		{name: "percentage above 100", budgets: []karpenter.Budget{always("101%")}, wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := AllowedDisruptions(pool(tt.budgets...), tt.nodes, empty, tt.now)
			if got != tt.want || (err != nil) != tt.wrong {
				t.Fatalf("allowed disruptions %d (%v), want %d", got, err, tt.want)
			}
		})
	}
}

// An additional budget never allows more, and no text causes a panic.
func TestMoreBudgetsAllowNoMore(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) karpenter.Budget {
		b := karpenter.Budget{Nodes: rapid.OneOf(rapid.StringMatching(`[0-9]{1,2}%?`), rapid.String()).Draw(t, "nodes")}
		if rapid.Bool().Draw(t, "scheduled") {
			schedule := rapid.OneOf(rapid.SampledFrom([]string{"@daily", "0 9 * * *", "*/5 * * * 1-5"}), rapid.String()).Draw(t, "schedule")
			b.Schedule, b.Duration = &schedule, &metav1.Duration{Duration: time.Duration(rapid.IntRange(0, 48).Draw(t, "hours")) * time.Hour}
		}
		return b
	})
	rapid.Check(t, func(t *rapid.T) {
		budgets := rapid.SliceOfN(one, 1, 4).Draw(t, "budgets")
		nodes := rapid.IntRange(0, 500).Draw(t, "nodes")
		all, _ := AllowedDisruptions(pool(budgets...), nodes, karpenter.DisruptionReasonEmpty, friday)
		fewer, _ := AllowedDisruptions(pool(budgets[1:]...), nodes, karpenter.DisruptionReasonEmpty, friday)
		if all < 0 || all > fewer {
			t.Fatalf("%d budgets allow %d, without the first %d", len(budgets), all, fewer)
		}
	})
}
