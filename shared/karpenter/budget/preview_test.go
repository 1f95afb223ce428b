package budget

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var update = flag.Bool("update", false, "write the golden files")

// formatPreview returns a preview as text, a line for each budget and window.
func formatPreview(p Preview) string {
	var out strings.Builder
	stamp := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return at.In(p.Zone).Format("Mon 02 Jan 15:04 -0700")
	}
	for i, s := range p.Budgets {
		fmt.Fprintf(&out, "budget %d: %s, applies %v, changes %s\n", i, s.Nodes, s.Applies, stamp(s.Changes))
	}
	for _, w := range p.Windows {
		fmt.Fprintf(&out, "%s - %s:", stamp(w.From), stamp(w.Until))
		for _, a := range w.Allowed {
			fmt.Fprintf(&out, " %s %q by %v;", a.Reason, a.Text, a.By)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestPreviewBudgets(t *testing.T) {
	const empty, drifted = karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted
	week := 7 * 24 * time.Hour
	office := at("0", "0 9 * * 1-5", 8*time.Hour)
	for _, tt := range []struct {
		name  string
		pool  *karpenter.NodePool
		nodes int
		from  time.Time
	}{
		{"no budget", pool(), NodesUnknown, friday},
		{"the default", pool(always("10%")), NodesUnknown, friday},
		{"the default of 15 nodes", pool(always("10%")), 15, friday},
		{"office hours in Berlin", in("Europe/Berlin", always("10%"), office), 100, friday},
		{"the week of the change", in("Europe/Berlin", always("10%"), office), 100, time.Date(2026, 10, 23, 22, 0, 0, 0, time.UTC)},
		{"a number and a percentage", pool(always("10%"), always("3", drifted), always("20%"), at("0", "@daily", time.Hour, empty)), NodesUnknown, friday},
		{"the same of 25 nodes", pool(always("10%"), always("3", drifted), always("20%"), at("0", "@daily", time.Hour, empty)), 25, friday},
		{"windows that overlap", pool(at("1", "0 0 * * *", 13*time.Hour), at("2", "0 12 * * *", 13*time.Hour)), NodesUnknown, friday},
		{"windows that touch", pool(at("1", "0 * * * *", time.Hour)), NodesUnknown, friday},
		{"longer than the preview", pool(at("1", "0 0 1 * *", 60*24*time.Hour), at("0", "0 0 1 1 *", time.Hour)), NodesUnknown, friday},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := PreviewBudgets(tt.pool, tt.nodes, tt.from, tt.from.Add(week))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", strings.ReplaceAll(tt.name, " ", "-")+".golden")
			got := formatPreview(p)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (run the test with -update)", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPreviewReportsInvalidBudgets(t *testing.T) {
	for want, p := range map[string]*karpenter.NodePool{
		"NodePool : annotation joist.sh/budget-time-zone is": in("Mars/Olympus"),
		"NodePool : spec.disruption.budgets[1]: nodes":       pool(always("1"), always("many")),
		"NodePool : spec.disruption.budgets[0]: reading":     pool(at("1", "often", time.Hour)),
	} {
		if got, err := PreviewBudgets(p, 1, friday, friday.Add(time.Hour)); err == nil || !strings.HasPrefix(err.Error(), want) || len(got.Windows) > 0 {
			t.Errorf("%v, want %s; %+v", err, want, got)
		}
	}
}

// At each moment a preview has the same value as AllowedDisruptions.
func TestPreviewMatchesAllowedDisruptions(t *testing.T) {
	schedules := []string{"@daily", "0 9 * * *", "*/7 * * * 1-5", "30 2 * * *", "0 0 31 2 *", "15 3 * * 0", "0 0 1 * *"}
	rapid.Check(t, func(t *rapid.T) {
		var budgets []karpenter.Budget
		for range rapid.IntRange(0, 3).Draw(t, "budgets") {
			b := karpenter.Budget{Nodes: rapid.SampledFrom([]string{"0", "1", "4", "0%", "10%", "50%"}).Draw(t, "nodes")}
			if rapid.Bool().Draw(t, "scheduled") {
				schedule := rapid.SampledFrom(schedules).Draw(t, "schedule")
				b.Schedule, b.Duration = &schedule, &metav1.Duration{Duration: time.Duration(rapid.SampledFrom([]int{0, 1, 5, 61, 600, 100_000}).Draw(t, "minutes")) * time.Minute}
			}
			if rapid.Bool().Draw(t, "for one reason") {
				b.Reasons = []karpenter.DisruptionReason{rapid.SampledFrom(Reasons).Draw(t, "reason")}
			}
			budgets = append(budgets, b)
		}
		p := in(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"}).Draw(t, "zone"), budgets...)
		from := time.Date(2026, 1, 1, 0, rapid.IntRange(0, 365*24*60).Draw(t, "from"), 0, 0, time.UTC)
		nodes := rapid.IntRange(0, 40).Draw(t, "nodes")
		look, err := PreviewBudgets(p, nodes, from, from.Add(4*24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		moments := []time.Time{from.Add(time.Duration(rapid.IntRange(0, 4*24*3600-1).Draw(t, "later")) * time.Second)}
		for _, w := range look.Windows {
			moments = append(moments, w.From, w.Until.Add(-1))
		}
		for _, now := range moments {
			k := slices.IndexFunc(look.Windows, func(w Window) bool { return !now.Before(w.From) && now.Before(w.Until) })
			for i, reason := range Reasons {
				want, err := AllowedDisruptions(p, nodes, reason, now)
				if got := look.Windows[k].Allowed[i]; err != nil || got.Most != want || got.Reason != reason || (want == Unbounded) != (len(got.By) == 0) {
					t.Fatalf("at %s %+v, want %d (%v)", now, got, want, err)
				}
			}
		}
		for i, w := range look.Windows[1:] {
			if !w.From.Equal(look.Windows[i].Until) || !w.From.Before(w.Until) {
				t.Fatalf("%s - %s after %s", w.From, w.Until, look.Windows[i].Until)
			}
		}
	})
}
