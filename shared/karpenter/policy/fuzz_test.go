package policy_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// names are the annotations, in the order of the seeds.
var names = []string{
	policy.MinSaving, policy.MinSavingPercent, policy.Payback, policy.EvictionCost, policy.Cooldown, policy.EvictionsPerHour, policy.Expiration, policy.ExpirationWindow,
	policy.BudgetTimeZone, policy.BudgetPerHour, policy.DriftCanary, policy.DriftBake, policy.DriftResume, policy.PriceLimit, policy.Limits,
}

// FuzzRead: an invalid value names its annotation, and a value that one reader accepts all do.
func FuzzRead(f *testing.F) {
	for _, value := range []string{"10%", "2", "30m", "Europe/Berlin", "2026-01-31T12:00:00Z", "0.05", "strict", "karpenter", "NaN", "-1", "1e400", "../../etc/passwd", "Local", ""} {
		for i := range names {
			f.Add(i, value)
		}
	}
	f.Fuzz(func(t *testing.T, index int, value string) {
		if index < 0 || index >= len(names) {
			return
		}
		name := names[index]
		annotations := map[string]string{name: value}
		got, err := policy.Read(annotations)
		if err != nil {
			if !strings.Contains(err.Error(), name) {
				t.Fatalf("%q: the error does not name %s: %v", value, name, err)
			}
			return
		}
		again, err := policy.Read(annotations)
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v, then %+v: %v", got, again, err)
		}
		for _, read := range []func() error{
			func() error { _, err := policy.ReadBudgets(annotations); return err },
			func() error { _, err := policy.ReadExpiration(annotations); return err },
			func() error { _, err := policy.ReadDrift(annotations); return err },
			func() error { _, err := policy.ReadConsolidation(annotations); return err },
			func() error { _, err := policy.ReadPriceLimit(annotations); return err },
		} {
			if err := read(); err != nil {
				t.Fatalf("%s=%q is valid, but not for one reader: %v", name, value, err)
			}
		}
	})
}
