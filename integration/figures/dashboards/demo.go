package dashboards

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
)

// The six hours that are played, in hours.
const (
	hours   = 6.0
	arrive  = 1.0
	storm   = 3.0
	leave   = 4.8
	samples = 72
)

// quiet are the panels in which nothing is good.
var quiet = []string{"Dead letters", "Past the deadline", "Held back", "Clocks and verdicts that failed", "Functions that fail", "Disruptions that failed"}

// standing are the panels whose lines stay where a change has brought them.
var standing = []string{"Cost by NodePool", "Usage of limits", "Nodes that may be disrupted"}

// noticed are the panels that know nothing of pods that arrive.
var noticed = []string{"Notices", "Wait of notices", "Nodes that go", "Time to go", "Ended", "Disruptions", "Disruptions by NodePool", "Moves of consolidation"}

// values are one line of a panel. They are made up.
func values(title, line string, n int) plotter.XYs {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(title + line))
	dice := rand.New(rand.NewPCG(seed.Sum64(), uint64(n))) //nolint:gosec // Pictures must be the same each time.
	height := 4 + 40*dice.Float64()
	if half := strings.HasSuffix(line, " 0.5") || strings.HasSuffix(line, " p50"); half {
		height = 3
	} else if strings.HasSuffix(line, "99") {
		height = 9
	}
	out := make(plotter.XYs, samples)
	for i := range out {
		at := hours * float64(i) / (samples - 1)
		out[i].X = at
		switch {
		case slices.Contains(quiet, title):
			out[i].Y = 0
		case slices.Contains(standing, title):
			out[i].Y = height * (.2 + ramp(at-arrive) - .8*ramp(at-leave))
		case slices.Contains(noticed, title):
			out[i].Y = height * (.02 + pulse(at-storm) + .3*pulse(at-leave)) * (.85 + .3*dice.Float64())
		default:
			out[i].Y = height * (.05 + pulse(at-arrive) + .7*pulse(at-storm) + .2*pulse(at-leave)) * (.85 + .3*dice.Float64())
		}
	}
	return out
}

// pulse rises at once and falls within the hour.
func pulse(since float64) float64 {
	if since < 0 {
		return 0
	}
	return math.Exp(-4 * since)
}

// ramp goes from nothing to one within a quarter of an hour.
func ramp(since float64) float64 { return min(max(since*4, 0), 1) }
