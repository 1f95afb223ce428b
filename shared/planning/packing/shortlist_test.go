package packing

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestSizeOfIsHalfADoubling compares the sizes with logarithms. Prices are never negative.
func TestSizeOfIsHalfADoubling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64Range(1e-9, 1e9).Draw(t, "a"), rapid.Float64Range(1e-9, 1e9).Draw(t, "b")
		size := func(price float64) int { return int(math.Floor(math.Log2(price) * 2)) }
		if got, want := sizeOf(a)-sizeOf(b), size(a)-size(b); got != want {
			t.Fatalf("%v is %d sizes above %v, want %d", a, got, b, want)
		}
		if sizeOf(0) >= sizeOf(a) {
			t.Fatalf("nothing is as large as %v", a)
		}
	})
}
