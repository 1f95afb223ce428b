package contest

import (
	"math"
	"testing"
)

// The bounds prove how far plans are from the optimum, so a lower one is a loss.
func TestBoundsOfScenarios(t *testing.T) {
	dir := t.TempDir()
	if err := Set("a,bspot,c,d=100").Generate(dir, 42); err != nil {
		t.Fatal(err)
	}
	samples, _, err := Samples(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"a-inflate-100": 3.865, "bspot-100": 0.7089, "c-mixed-100": 2.738, "d-multi-100": 9.373}
	for _, s := range samples {
		got, err := (&Validator{}).Bound(s)
		if err != nil || math.Abs(got/want[s.Name]-1) > 2e-3 {
			t.Errorf("the bound of %s is %f (%v), want %f", s.Name, got, err, want[s.Name])
		}
	}
}
