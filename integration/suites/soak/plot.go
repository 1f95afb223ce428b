package soak

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/joist-autoscaler/joist/integration/environment/plotting"
	"github.com/joist-autoscaler/joist/integration/environment/timeline"
	"github.com/joist-autoscaler/joist/integration/suites/storm"
)

// SVG draws a report: pods and nodes, the times of bindings and drains with their percentiles, and the heaps.
func SVG(r Measurements) ([]byte, error) {
	if len(r.Samples) == 0 {
		return nil, errors.New("drawing a soak: there are no samples")
	}
	fleet := timeline.Panel("pods, nodes")
	binds, err := spansPanel("seconds, pending to bound", r.Binds, r.Took)
	if err != nil {
		return nil, err
	}
	drains, err := spansPanel("seconds, warning to drained", r.Drains, r.Took)
	if err != nil {
		return nil, err
	}
	heaps := timeline.Panel("live heap, MiB")
	err = errors.Join(
		timeline.Line(fleet, "pods running", 0, samplePoints(r, func(s ClusterSample) int { return s.Running })),
		timeline.Line(fleet, "pods pending", 2, samplePoints(r, func(s ClusterSample) int { return s.Pending })),
		timeline.Line(fleet, "instances", 1, samplePoints(r, func(s ClusterSample) int { return s.Instances })),
		drawHeaps(heaps, r),
	)
	fleet.Y.Max *= 1.4 // space for the names
	heaps.Y.Max *= 1.4
	if err != nil {
		return nil, err
	}
	var acts []timeline.Act
	if r.Calm > 0 {
		acts = []timeline.Act{{Name: "with kills of services", To: r.Calm}, {Name: "without", From: r.Calm, To: r.Took}}
	}
	return timeline.SVG(r.Took, acts, fleet, binds, drains, heaps)
}

func samplePoints(r Measurements, of func(ClusterSample) int) []timeline.Point {
	return thinPoints(timeline.Points(r.Samples, func(s ClusterSample) time.Duration { return s.At }, func(s ClusterSample) float64 { return float64(of(s)) }), r.Took)
}

// columns is how many points a line has at most: a run of hours has more than the picture has columns.
const columns = 400

// thinPoints keeps the largest value of each column.
func thinPoints(points []timeline.Point, end time.Duration) []timeline.Point {
	width := max(end/columns, 1)
	var out []timeline.Point
	for _, p := range points {
		if n := len(out); n > 0 && out[n-1].At/width == p.At/width {
			out[n-1].Value = max(out[n-1].Value, p.Value)
			continue
		}
		out = append(out, p)
	}
	return out
}

// drawHeaps draws the three services with the largest heaps.
func drawHeaps(p *plot.Plot, r Measurements) error {
	services := slices.SortedFunc(maps.Keys(r.Readings), func(a, b string) int {
		heapA, heapB := r.growth(a, values[0]), r.growth(b, values[0])
		return cmp.Or(cmp.Compare(heapB.Mean, heapA.Mean), strings.Compare(a, b))
	})
	for i, service := range services[:min(len(services), 3)] {
		points := timeline.Points(r.Readings[service], func(r ServiceReading) time.Duration { return r.At }, func(r ServiceReading) float64 { return r.Heap / mebi })
		if len(points) == 0 {
			continue
		}
		if err := timeline.Line(p, strings.TrimPrefix(service, "joist-"), i, thinPoints(points, r.Took)); err != nil {
			return err
		}
	}
	return nil
}

// spansPanel has a dot for each duration at its beginning, and lines at the median and the 99th percentile.
func spansPanel(name string, spans []Latency, end time.Duration) (*plot.Plot, error) {
	p := timeline.Panel(name)
	if len(spans) == 0 {
		return p, nil
	}
	// Dots at the same place are drawn once.
	var dots plotter.XYs
	width, longest := max(2*end/columns, 1), slices.Max(sortSpans(spans))
	drawn := map[[2]time.Duration]bool{}
	for _, s := range spans {
		place := [2]time.Duration{s.At / width, s.Took / max(longest/40, 1)}
		if !drawn[place] {
			drawn[place] = true
			dots = append(dots, plotter.XY{X: s.At.Seconds(), Y: s.Took.Seconds()})
		}
	}
	scatter, err := plotter.NewScatter(dots)
	if err != nil {
		return nil, fmt.Errorf("drawing %s: %w", name, err)
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: plotting.Stroke(0).Color, Radius: vg.Points(1.2), Shape: draw.CircleGlyph{}}
	p.Add(scatter)
	for i, percent := range []float64{50, 99} {
		at := storm.Percentile(sortSpans(spans), percent).Seconds()
		if err := timeline.Level(p, fmt.Sprintf("p%g %.2f s", percent, at), i+1, at, end); err != nil {
			return nil, err
		}
	}
	return p, nil
}
