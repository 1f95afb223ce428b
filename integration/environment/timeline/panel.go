package timeline

import (
	"fmt"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/joist-autoscaler/joist/integration/environment/plotting"
)

// Point is a value at a time since the beginning.
type Point struct {
	At    time.Duration
	Value float64
}

// Points returns one value of each sample.
func Points[S any](samples []S, at func(S) time.Duration, value func(S) float64) []Point {
	out := make([]Point, len(samples))
	for i, s := range samples {
		out[i] = Point{at(s), value(s)}
	}
	return out
}

// Panel returns an empty plot with a label on its vertical axis, which begins at 0.
func Panel(name string) *plot.Plot {
	p := plotting.Bare()
	p.Legend.Top = true
	p.Y.Label.Text = name
	p.Add(plotting.Grid())
	p.Y.Min = 0
	return p
}

// Line draws points with the palette's stroke of that number. A non-empty name is added
// to the legend.
func Line(p *plot.Plot, name string, stroke int, points []Point) error {
	shown := make(plotter.XYs, 0, len(points))
	for i, one := range points {
		// A constant stretch needs only its two ends.
		if i > 0 && i < len(points)-1 && points[i-1].Value == one.Value && points[i+1].Value == one.Value {
			continue
		}
		shown = append(shown, plotter.XY{X: one.At.Seconds(), Y: one.Value})
	}
	line, err := plotter.NewLine(shown)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", name, err)
	}
	line.LineStyle = plotting.Stroke(stroke)
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	p.Y.Min = 0
	return nil
}

// Level draws a constant value until the end, with space above it.
func Level(p *plot.Plot, name string, stroke int, value float64, end time.Duration) error {
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: value}, {X: end.Seconds(), Y: value}})
	if err != nil {
		return fmt.Errorf("drawing %s: %w", name, err)
	}
	line.LineStyle = plotting.Stroke(stroke)
	p.Add(line)
	p.Legend.Add(name, line)
	p.Y.Max = max(p.Y.Max, value*1.3)
	return nil
}
