package disruption

import (
	"math"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// TestSavingUsesLaunchableOfferings checks that the saving uses the price that the replacement can be
// launched at: neither that of a full reservation nor that of a capacity type that the NodePool excludes
// (Karpenter: pkg/cloudprovider/launchable_test.go and EstimatedSavings in
// pkg/controllers/disruption/types.go).
func TestSavingUsesLaunchableOfferings(t *testing.T) {
	const reserved, onDemand, spot = karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand, karpenter.CapacityTypeSpot
	for _, tt := range []struct {
		name          string
		free          int64
		capacityTypes []string
		want          string
	}{
		{"full reservation", 0, []string{reserved, onDemand}, onDemand},
		{"reservation with free capacity", 1, []string{reserved, onDemand}, reserved},
		{"spot is cheaper, but excluded", 0, []string{onDemand}, onDemand},
		{"spot", 0, []string{onDemand, spot}, spot},
	} {
		pool := fixture.Pool(allowing(tt.capacityTypes...))
		s, cat := reservedSnapshot(tt.free, pool, fixture.Node("a", "t4g.xlarge", with(1)))
		stock := instancetypes.New(s, cat)
		found := Evaluate(s, stock, Options{})
		if len(found.Commands) != 1 || len(found.Commands[0].Result.Nodes) != 1 {
			t.Errorf("%s: commands %q", tt.name, all(s, found))
			continue
		}
		c := found.Commands[0]
		offering := c.Result.Nodes[0].Offerings[0]
		if offering.CapacityType != tt.want {
			t.Errorf("%s: the replacement is %+v", tt.name, offering)
		}
		price := 4 * 0.0416 // Four times the on-demand price of a t4g.medium.
		if want := price - offering.PricePerHour; math.Abs(c.SavedPerHour-want) > 1e-9 || offering.CapacityType == onDemand && offering.PricePerHour != 0.0416 {
			t.Errorf("%s: saves %v, and the replacement costs %v", tt.name, c.SavedPerHour, offering.PricePerHour)
		}
	}
}

// TestFullReservationIsNoCheaperType checks that a node is not replaced because of the price of a full
// reservation.
func TestFullReservationIsNoCheaperType(t *testing.T) {
	s, cat := reservedSnapshot(0, fixture.Pool(allowing(karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand)), fixture.Node("a", "t4g.medium", with(3)))
	if found := Evaluate(s, instancetypes.New(s, cat), Options{}); len(found.Commands) > 0 {
		t.Errorf("commands %q", all(s, found))
	}
	cat.Reservations[0].Count, cat.Counted = 1, s.TakenAt.Add(-time.Minute)
	if found := Evaluate(s, instancetypes.New(s, cat), Options{}); len(found.Commands) != 1 {
		t.Errorf("commands %q, want the replacement by a reserved instance", all(s, found))
	}
}
