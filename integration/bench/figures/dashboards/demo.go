package dashboards

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
)

// The demo data cover six hours. Times are in hours.
const (
	hours   = 6.0
	arrive  = 1.0
	storm   = 3.0
	leave   = 4.8
	samples = 72
)

// quiet lists the panels that are normally zero.
var quiet = []string{"DLQ messages", "Node reboots", "Reboot time", "Drains past the deadline", "Launches paused, requests refused", "Clock skew and failed acknowledgements", "Function errors", "Failed disruptions", "AWS throttling and retries"}

// constant lists the panels whose lines never change.
var constant = []string{"Versions", "User data size"}

// standing lists the panels whose lines keep their level after a change.
var standing = []string{"Cost by NodePool", "NodePool usage and limits", "Eligible nodes", "Disruption budgets"}

// noticed lists the panels that new pods do not change.
var noticed = []string{"Interruption notices", "Interruption handling latency", "Nodes terminated", "Termination time", "Terminations requested", "Disruptions", "Disruptions by NodePool", "Pods of terminated nodes", "Consolidation moves"}

// values returns made-up data for one line of a panel.
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
		case slices.Contains(constant, title):
			out[i].Y = 2
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
