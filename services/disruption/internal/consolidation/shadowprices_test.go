package consolidation_test

import (
	"math"
	"testing"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
)

func TestWastePerPod(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(),
		fixture.Node("idle", "t4g.large"),
		fixture.Node("half", "t4g.large", fixture.With(fixture.Pods("web", 4, "250m", "1Gi"))),
		fixture.Node("full", "t4g.large", fixture.With(fixture.Pods("shop", 2, "1", "1Gi"))))
	all := candidate.FindAll(&s, fixture.Stock(s))
	price := all[0].Price
	worth := consolidation.ShadowPrices{Core: price / 2} // A core of two costs half.
	for _, tt := range []struct {
		name  string
		nodes []*candidate.Candidate
		want  float64
	}{
		{"none", nil, 0},
		{"half of a node's capacity wasted, four pods", []*candidate.Candidate{&all[1]}, price / 2 / 4},
		{"nodes without waste do not count", []*candidate.Candidate{&all[1], &all[2]}, price / 2 / 4},
		{"with an empty node", []*candidate.Candidate{&all[0], &all[1]}, price * 1.5 / 4},
		{"only an empty node", []*candidate.Candidate{&all[0]}, price},
	} {
		if got := worth.WastePerPod(tt.nodes); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: waste per pod $%.6f, want $%.6f", tt.name, got, tt.want)
		}
	}
}
