package policy_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// Each reader reports errors in its own annotations, including misspelt ones, and in no others.
func TestPartsIgnoreOtherAnnotations(t *testing.T) {
	good := map[string]string{policy.BudgetTimeZone: "Europe/Berlin", policy.Expiration: "graceful", policy.ExpirationWindow: "2h", policy.DriftCanary: "1", policy.DriftBake: "5m"}
	for _, tt := range []struct {
		name, annotation, text  string
		zone, expiration, drift bool
	}{
		{"no problem", "other", "", true, true, true},
		{"a threshold", policy.MinSaving, "lots", true, true, true},
		{"the zone", policy.BudgetTimeZone, "Mars/Olympus", false, true, true},
		{"the zone's name", "joist.sh/budget-timezone", "Europe/Berlin", false, true, true},
		{"the rate", policy.BudgetPerHour, "some", false, true, true},
		{"the window", policy.ExpirationWindow, "1d", true, false, true},
		{"the window's name", "joist.sh/expiration-windows", "1h", true, false, true},
		{"the canary", policy.DriftCanary, "one", true, true, false},
		{"the canary's name", "joist.sh/drift-canaries", "1", true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			annotations := map[string]string{tt.annotation: tt.text}
			for name, text := range good {
				if name != tt.annotation {
					annotations[name] = text
				}
			}
			budgets, err := policy.ReadBudgets(annotations)
			if (err == nil) != tt.zone || tt.zone && budgets.Zone.String() != "Europe/Berlin" {
				t.Errorf("budgets %v, %v", budgets, err)
			}
			if drift, err := policy.ReadDrift(annotations); (err == nil) != tt.drift || drift.HasWaves() != tt.drift {
				t.Errorf("drift %+v, %v", drift, err)
			}
			want := policy.ExpirationPolicy{Graceful: tt.expiration}
			if tt.expiration {
				want.Window = 2 * time.Hour
			}
			if got, err := policy.ReadExpiration(annotations); (err == nil) != tt.expiration || got != want {
				t.Errorf("expiration %+v, %v", got, err)
			}
		})
	}
}
