package packing_test

import (
	"math"
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// TestBoundWithFreeType packs pods that may use a free candidate, as a NodeOverlay can make one, and then also pods that may not.
func TestBoundWithFreeType(t *testing.T) {
	groups := []packing.Group{
		{Requests: []int64{1000, 1000}, Candidates: setOf(3, 0, 1, 2), ZoneCapacityTypes: 1, Count: 10},
		{Requests: []int64{500, 1000}, Candidates: setOf(3, 1, 2), ZoneCapacityTypes: 1, Count: 10},
	}
	for n, want := range map[int]struct{ cost, least, most float64 }{1: {0, 0, 0}, 2: {3.5, 1, 10 * 500 * 3.5 / 8000}} {
		p := packing.New(zonedProblem(1000, candidateOf(4000, 8000, 0), candidateOf(4000, 8000, 2), candidateOf(8000, 16000, 3.5)))
		p.Pack(groups[:n])
		if bound := p.LowerBound(); math.Abs(p.Cost()-want.cost) > 1e-6 || bound < want.least || bound > want.most+1e-6 {
			t.Errorf("%d pod groups cost $%v and at least $%v, want $%v and at least $%v to $%v", n, p.Cost(), bound, want.cost, want.least, want.most)
		}
	}
}
