package budget

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// longest is how long one budget may take, also on a busy machine.
const longest = 10 * time.Second

// FuzzBudget: a budget gives a number from 0 to Unbounded within bounded time, an invalid one allows nothing and
// names its index, and the preview agrees with it at its beginning.
func FuzzBudget(f *testing.F) {
	f.Add("10%", "0 9 * * 1-5", int64(8*time.Hour), "Europe/Berlin", 11, int64(1_800_000_000))
	f.Add("0", "@daily", int64(13*time.Hour), "", 10, int64(1_800_000_000))
	f.Add("5", "0 0 31 2 *", int64(time.Hour), "UTC", 10, int64(0))
	f.Add("100%", "*/1 * * * *", int64(1<<62), "America/New_York", 1, int64(1_700_000_000))
	f.Add("3", "@every 1s", int64(-1), "Asia/Kolkata", 1, int64(1_700_000_000))
	f.Add("3", "TZ=Mars/Up 0 9 * * *", int64(1), "Australia/Lord_Howe", 1, int64(1_700_000_000))
	f.Fuzz(func(t *testing.T, nodes, schedule string, lasts int64, zone string, count int, at int64) {
		if count < 0 || count > 1_000_000 || at < 0 || at > 1<<34 {
			return
		}
		budget := karpenter.Budget{Nodes: nodes, Schedule: &schedule, Duration: &metav1.Duration{Duration: time.Duration(lasts)}}
		if schedule == "" {
			budget.Schedule, budget.Duration = nil, nil
		}
		p, now := pool(budget), time.Unix(at, 0)
		if zone != "" {
			p.Annotations = map[string]string{policy.BudgetTimeZone: zone}
		}
		start := time.Now()
		allowed, err := AllowedDisruptions(p, count, karpenter.DisruptionReasonEmpty, now)
		preview, previewErr := PreviewBudgets(p, count, now, now.Add(24*time.Hour))
		if took := time.Since(start); took > longest {
			t.Fatalf("it took %s", took)
		}
		if (err != nil) != (previewErr != nil) {
			t.Fatalf("the budget: %v; the preview: %v", err, previewErr)
		}
		if err != nil {
			if allowed != 0 || !strings.Contains(err.Error(), "budgets[0]") && !strings.Contains(err.Error(), policy.BudgetTimeZone) {
				t.Fatalf("%d are allowed: %v", allowed, err)
			}
			return
		}
		if allowed < 0 || len(preview.Windows) == 0 || preview.Windows[0].Allowed[0].Most != allowed {
			t.Fatalf("%d are allowed, and by the preview %+v", allowed, preview.Windows)
		}
	})
}
