package solver

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// TestPremiumOfEqualPods allows plans for equal pods to cost as much more as the resilience premium, and at least as much
// as by default.
func TestPremiumOfEqualPods(t *testing.T) {
	least := packing.DefaultPolicy.EqualPremium
	for premium, want := range map[float64]float64{0: least, least / 2: least, 0.2: 0.2} {
		if got := packerPolicy(planning.Settings{ResiliencePremium: &premium}); got.EqualPremium != want || got.Premium != premium {
			t.Errorf("premium %v: got %v for equal pods and %v for others, want %v and %v", premium, got.EqualPremium, got.Premium, want, premium)
		}
	}
}

// TestAffordableNodes counts nodes within the rest of a price limit, in microdollars an hour, and drops the offerings
// that one of them may not cost.
func TestAffordableNodes(t *testing.T) {
	for _, tt := range []struct {
		name       string
		prices     []float64
		count      int
		left       int64
		want, kept int
	}{
		{"enough is left", []float64{0.1, 0.2}, 2, 400000, 2, 2},
		{"enough for the cheapest only", []float64{0.1, 0.2}, 2, 399999, 2, 1},
		{"enough for one node", []float64{0.1, 0.2}, 2, 199999, 1, 1},
		{"not enough", []float64{0.1}, 2, 99999, 0, 0},
		{"a microdollar", []float64{1e-6}, 9, 3, 3, 1},
		{"free", []float64{0}, 9, 3, 9, 1},
	} {
		var options []planning.PricedOffering
		for _, price := range tt.prices {
			options = append(options, planning.PricedOffering{PricePerHour: price})
		}
		kept, count := filterAffordable(options, tt.count, tt.left)
		if count != tt.want || len(kept) != tt.kept {
			t.Errorf("%s: %d nodes with %d offerings, want %d with %d", tt.name, count, len(kept), tt.want, tt.kept)
		}
	}
}
