package storm

import (
	"errors"
	"fmt"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/joist-autoscaler/joist/integration/environment/plotting"
	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// SVG draws a report: the pending pods, the nodes and instances, and the time from each
// warning to the taint of its node.
func SVG(r Report) ([]byte, error) {
	if len(r.Samples) == 0 {
		return nil, errors.New("drawing a storm: there are no samples")
	}
	pods, err := podsPanel(r)
	if err != nil {
		return nil, err
	}
	fleet, err := fleetPanel(r)
	if err != nil {
		return nil, err
	}
	notices, err := noticesPanel(r)
	if err != nil {
		return nil, err
	}
	return timeline.SVG(r.Samples[len(r.Samples)-1].At, r.Acts, pods, fleet, notices)
}

func podsPanel(r Report) (*plot.Plot, error) {
	p := timeline.Panel("pods without a node")
	return p, timeline.Line(p, "", 0, r.points(func(s Sample) int { return s.Pending }))
}

func fleetPanel(r Report) (*plot.Plot, error) {
	p := timeline.Panel("nodes")
	err := errors.Join(
		timeline.Line(p, "instances", 1, r.points(func(s Sample) int { return s.Instances })),
		timeline.Line(p, "nodes", 0, r.points(func(s Sample) int { return s.Nodes })),
		timeline.Line(p, "being drained", 2, r.points(func(s Sample) int { return s.Going })),
	)
	p.Y.Max *= 1.3 // room for the names
	return p, err
}

// noticesPanel has a dot for each notice, and lines at the median and at the 99th
// percentile.
func noticesPanel(r Report) (*plot.Plot, error) {
	p := timeline.Panel("seconds, warning to taint")
	var dots plotter.XYs
	for _, n := range r.Notices {
		if n.Cordoned > 0 {
			dots = append(dots, plotter.XY{X: n.Warned.Seconds(), Y: (n.Cordoned - n.Warned).Seconds()})
		}
	}
	if len(dots) == 0 {
		return p, nil
	}
	scatter, err := plotter.NewScatter(dots)
	if err != nil {
		return nil, fmt.Errorf("drawing the notices: %w", err)
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: plotting.Stroke(0).Color, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
	p.Add(scatter)
	end := r.Samples[len(r.Samples)-1].At
	for i, percent := range []float64{50, 99} {
		at := Percentile(r.Cordons(), percent).Seconds()
		if err := timeline.Level(p, fmt.Sprintf("p%g %.2f s", percent, at), i+1, at, end); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// points returns one value of all samples.
func (r Report) points(of func(Sample) int) []timeline.Point {
	return timeline.Points(r.Samples, func(s Sample) time.Duration { return s.At }, func(s Sample) float64 { return float64(of(s)) })
}
