package storm

import (
	"bytes"
	"errors"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/joist-autoscaler/joist/integration/palette"
)

// Measures of the picture.
const (
	width      = 860
	height     = 620
	headHeight = 20
)

// SVG draws a report: the pods that wait, the nodes and instances, and the time
// from each warning to the taint of its node.
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
	notices.X.Label.Text = "seconds since the beginning"
	end := r.Samples[len(r.Samples)-1].At
	grid := [][]*plot.Plot{{pods}, {fleet}, {notices}}
	for _, row := range grid {
		row[0].X.Min, row[0].X.Max = 0, max(end.Seconds(), 1)
		row[0].Add(acts{r.Acts})
	}
	canvas := vgsvg.New(width, height)
	c := draw.New(canvas)
	tiles := draw.Tiles{Rows: len(grid), Cols: 1, PadY: 10, PadTop: headHeight, PadRight: 10, PadBottom: 2, PadLeft: 2}
	canvases := plot.Align(grid, tiles, c)
	for i, row := range grid {
		row[0].Draw(canvases[i][0])
	}
	nameActs(c, canvases[0][0], pods, r.Acts)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("writing the drawing: %w", err)
	}
	return out.Bytes(), nil
}

func podsPanel(r Report) (*plot.Plot, error) {
	p := panel("pods without a node")
	return p, series(p, r.Samples, "", 0, func(s Sample) int { return s.Pending })
}

func fleetPanel(r Report) (*plot.Plot, error) {
	p := panel("nodes")
	err := errors.Join(
		series(p, r.Samples, "instances", 1, func(s Sample) int { return s.Instances }),
		series(p, r.Samples, "nodes", 0, func(s Sample) int { return s.Nodes }),
		series(p, r.Samples, "being drained", 2, func(s Sample) int { return s.Going }),
	)
	p.Y.Max *= 1.3 // room for the names
	return p, err
}

// noticesPanel has a dot for each notice, and lines at the median and at the
// 99th percentile.
func noticesPanel(r Report) (*plot.Plot, error) {
	p := panel("seconds, warning to taint")
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
	scatter.GlyphStyle = draw.GlyphStyle{Color: palette.Stroke(0).Color, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
	p.Add(scatter)
	p.Y.Min = 0
	end := r.Samples[len(r.Samples)-1].At.Seconds()
	for i, percent := range []float64{50, 99} {
		at := Percentile(r.Cordons(), percent).Seconds()
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: at}, {X: end, Y: at}})
		if err != nil {
			return nil, fmt.Errorf("drawing a percentile: %w", err)
		}
		line.LineStyle = palette.Stroke(i + 1)
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("p%g %.2f s", percent, at), line)
		p.Y.Max = max(p.Y.Max, at*1.3)
	}
	return p, nil
}

// series draws one number of all samples.
func series(p *plot.Plot, samples []Sample, name string, stroke int, of func(Sample) int) error {
	points := make(plotter.XYs, 0, len(samples))
	for i, s := range samples {
		// Of a stretch without change its two ends are enough.
		if i > 0 && i < len(samples)-1 && of(samples[i-1]) == of(s) && of(samples[i+1]) == of(s) {
			continue
		}
		points = append(points, plotter.XY{X: s.At.Seconds(), Y: float64(of(s))})
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", name, err)
	}
	line.LineStyle = palette.Stroke(stroke)
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	p.Y.Min = 0
	return nil
}

// acts draws a line where each act begins.
type acts struct{ list []Act }

// Plot implements plot.Plotter.
func (a acts) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, act := range a.list {
		at := x(act.From.Seconds())
		c.StrokeLine2(draw.LineStyle{Color: palette.Faint(0x60), Width: vg.Points(0.8)}, at, c.Min.Y, at, c.Max.Y)
	}
}

// nameActs writes the names above the first panel, each over its act when it is
// long enough.
func nameActs(c, first draw.Canvas, p *plot.Plot, list []Act) {
	data := p.DataCanvas(first)
	x, _ := p.Transforms(&data)
	style := p.Y.Label.TextStyle
	style.Rotation, style.XAlign, style.YAlign = 0, draw.XLeft, draw.YCenter
	style.Font.Size = palette.Small
	for _, act := range list {
		from, to := x(act.From.Seconds()), x(act.To.Seconds())
		if style.Width(act.Name) <= to-from {
			c.FillText(style, vg.Point{X: from, Y: c.Max.Y - headHeight/2}, act.Name)
		}
	}
}
