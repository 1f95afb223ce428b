package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

func TestRead(t *testing.T) {
	if got, err := policy.Read(map[string]string{"karpenter.sh/nodepool-hash": "1"}); err != nil || got != (policy.Policy{}) {
		t.Errorf("Read without Joist's annotations = %+v, %v", got, err)
	}
	if policy.HasPolicy(nil) || policy.HasPolicy(map[string]string{"joist.sh/approve": "keep", "joist.sh/gate": ""}) {
		t.Error("an empty policy is reported as set")
	}
	got, err := policy.Read(map[string]string{
		policy.MinSaving: "$0.05", policy.MinSavingPercent: "10%", policy.Payback: "2h", policy.EvictionCost: "0.001",
		policy.Cooldown: "1h", policy.EvictionsPerHour: "20%", policy.Expiration: "graceful", policy.ExpirationWindow: "24h",
		policy.BudgetTimeZone: "Europe/Berlin", policy.BudgetPerHour: "10%", policy.DriftCanary: "2", policy.DriftBake: "30m", policy.DriftResume: "2026-11-22T13:00:00+01:00", policy.PriceLimit: "25", policy.Limits: "strict",
	})
	if err != nil {
		t.Fatal(err)
	}
	c := got.Consolidation
	if c.MinSaving != 0.05 || c.MinSavingPart != 0.1 || c.Payback != 2*time.Hour || c.EvictionCost != 0.001 || c.Cooldown != time.Hour || c.EvictionsPerHour.CountOf(11) != 3 {
		t.Errorf("consolidation: %+v", c)
	}
	if !got.Expiration.Graceful || got.Expiration.Window != 24*time.Hour || got.Budgets.Zone.String() != "Europe/Berlin" || got.Budgets.PerHour.CountOf(25) != 3 ||
		got.Drift.Canary.CountOf(100) != 2 || got.Drift.Bake != 30*time.Minute || got.Drift.Resume != time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC) || *got.PriceLimit != 25 || !got.StrictLimits {
		t.Errorf("%+v", got)
	}
}

// wrong has invalid values of each annotation.
var wrong = map[string][]string{
	policy.MinSaving: {"", "-1", "a lot", "NaN", "Inf"}, policy.MinSavingPercent: {"101", "-1", "NaN", ""},
	policy.Payback: {"2", "-1h", "soon"}, policy.EvictionCost: {"x"}, policy.Cooldown: {"1 hour"},
	policy.EvictionsPerHour: {"-1", "101%", "1.5", "%"}, policy.Expiration: {"Graceful", ""}, policy.ExpirationWindow: {"1d"},
	policy.BudgetTimeZone: {"", "Local", "Mars/Olympus"}, policy.BudgetPerHour: {"", "-1", "ten"}, policy.DriftCanary: {"some"}, policy.DriftBake: {"-1m"}, policy.DriftResume: {"", "now", "2026-11-22"}, policy.PriceLimit: {"", "free"},
	policy.Limits: {"", "loose", "Strict"},
}

// A misspelt annotation name is reported, not ignored.
func TestReadReportsUnknownAnnotations(t *testing.T) {
	for name, meant := range map[string]string{
		policy.MinSaving + "s": policy.MinSaving, "joist.sh/expirations": policy.Expiration, "joist.sh/drift-wave": policy.DriftCanary,
		"joist.sh/budget-timezone": policy.BudgetTimeZone, "joist.sh/price-limits": policy.PriceLimit, "joist.sh/limits-strict": policy.Limits,
	} {
		asked := map[string]string{name: "1", policy.Cooldown: "1h"}
		if got, err := policy.Read(asked); err == nil || got != (policy.Policy{}) || !strings.HasPrefix(err.Error(), "unknown annotation "+name+": use ") || !strings.Contains(err.Error(), meant) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if !policy.HasPolicy(map[string]string{name: ""}) {
			t.Errorf("%s is not reported as set", name)
		}
		if _, err := policy.ReadConsolidation(asked); (err != nil) != (meant == policy.MinSaving) {
			t.Errorf("%s: consolidation: %v", name, err)
		}
	}
}

func TestReadReportsAllProblems(t *testing.T) {
	all := map[string]string{}
	for name, texts := range wrong {
		for _, text := range texts {
			got, err := policy.Read(map[string]string{name: text})
			if !policy.HasPolicy(map[string]string{name: text}) {
				t.Errorf("%s: %q is not reported as set", name, text)
			}
			if err == nil || got != (policy.Policy{}) || !strings.Contains(err.Error(), "annotation "+name+" is ") || !strings.Contains(err.Error(), ": use ") {
				t.Errorf("%s: %q: %+v, %v", name, text, got, err)
			}
			all[name] = text
		}
	}
	if _, err := policy.Read(map[string]string{policy.Payback: strings.Repeat("ä", 1<<17)}); err == nil || len(err.Error()) > 250 || !strings.Contains(err.Error(), "ää…\"") {
		t.Errorf("error of a long value: %v", err)
	}
	if _, err := policy.Read(all); err == nil || strings.Count(err.Error(), "annotation ") != len(wrong) {
		t.Errorf("some problems are missing in the error: %v", err)
	}
}
