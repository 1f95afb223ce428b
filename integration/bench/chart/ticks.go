package chart

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
)

// decades widens a range to whole powers of ten; an empty one stays empty.
func decades(low, high float64) (from, to float64) {
	if low <= 0 {
		return 0, 0
	}
	return math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(max(high, low*1.01))))
}

func sizesRange(sizes []float64) (low, high float64) {
	if len(sizes) == 0 {
		return 1, 10
	}
	return slices.Min(sizes), slices.Max(sizes)
}

// sizesOf marks the measured sizes, and labels the sizes that are not too close to the last
// label.
type sizesOf []float64

// Ticks implements plot.Ticker.
func (s sizesOf) Ticks(_, _ float64) []plot.Tick {
	const apart = 4 // times the last labelled size
	var out []plot.Tick
	named := 0.0
	for _, size := range slices.Compact(slices.Sorted(slices.Values(s))) {
		tick := plot.Tick{Value: size}
		if size >= apart*named {
			tick.Label, named = pods(size), size
		}
		out = append(out, tick)
	}
	return out
}

func pods(count float64) string {
	if count >= 1000 {
		return fmt.Sprintf("%gk", count/1000)
	}
	return fmt.Sprintf("%g", count)
}

// durations marks each power of ten of seconds.
type durations struct{}

// Ticks implements plot.Ticker.
func (durations) Ticks(low, high float64) []plot.Tick {
	var out []plot.Tick
	for power := math.Round(math.Log10(low)); power <= math.Round(math.Log10(high)); power++ {
		out = append(out, plot.Tick{Value: math.Pow(10, power), Label: duration(power)})
	}
	return out
}

// duration formats a power of ten seconds.
func duration(power float64) string {
	switch {
	case power < -3:
		return fmt.Sprintf("%g µs", math.Round(math.Pow(10, power+6)))
	case power < 0:
		return fmt.Sprintf("%g ms", math.Round(math.Pow(10, power+3)))
	default:
		return fmt.Sprintf("%g s", math.Round(math.Pow(10, power)))
	}
}

// silent has another ticker's marks without their labels.
type silent struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (s silent) Ticks(low, high float64) []plot.Tick {
	ticks := s.Ticker.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = " " // A mark without a label would be a minor one.
		}
	}
	return ticks
}
