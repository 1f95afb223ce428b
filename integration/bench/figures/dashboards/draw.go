package dashboards

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/joist-autoscaler/joist/integration/environment/plotting"
)

// Dimensions of a picture: of one cell of the grid, and of the header.
const (
	cellWide   = 40
	cellHigh   = 17
	topHigh    = 22
	lineHigh   = 10
	linesShown = 3
	margin     = 5
)

// note is printed above each picture, so that it is not mistaken for a measurement.
const note = "demo data: from a seeded generator, not measured"

// SVG draws pictures on their grid.
func SVG(title string, pictures []Picture) ([]byte, error) {
	columns, rows := 0, 0
	for _, p := range pictures {
		columns, rows = max(columns, p.X+p.W), max(rows, p.Y+p.H)
	}
	if columns == 0 {
		return nil, fmt.Errorf("drawing %s: it has no panels", title)
	}
	canvas := vgsvg.New(vg.Length(columns*cellWide), vg.Length(rows*cellHigh+topHigh))
	if err := paint(draw.New(canvas), title, pictures); err != nil {
		return nil, err
	}
	return plotting.WriteSVG(canvas)
}

// paint draws each picture in its place.
func paint(c draw.Canvas, title string, pictures []Picture) error {
	head := plotting.Bare().Title.TextStyle
	head.XAlign, head.YAlign = draw.XLeft, draw.YCenter
	c.FillText(head, vg.Point{X: margin, Y: c.Max.Y - topHigh/2}, title+" ("+note+")")
	for _, p := range pictures {
		at := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: vg.Length(p.X*cellWide) + margin, Y: c.Max.Y - topHigh - vg.Length((p.Y+p.H)*cellHigh) + margin},
			Max: vg.Point{X: vg.Length((p.X+p.W)*cellWide) - margin, Y: c.Max.Y - topHigh - vg.Length(p.Y*cellHigh)},
		}}
		if p.Header {
			at.FillText(head, vg.Point{X: at.Min.X, Y: (at.Min.Y + at.Max.Y) / 2}, strings.ToUpper(p.Title))
			continue
		}
		if err := panel(at, p); err != nil {
			return fmt.Errorf("drawing the panel %s: %w", p.Title, err)
		}
	}
	return nil
}

// panel draws one panel, with the names of its first lines below it.
func panel(c draw.Canvas, p Picture) error {
	shown := p.Lines[:min(len(p.Lines), linesShown)]
	plotted := plotting.Bare()
	plotted.Title.Text = p.Title
	plotted.Add(plotting.Grid())
	plotted.Y.Min, plotted.Y.Max = 0, 1
	for n, name := range shown {
		points := values(p.Title, name, n)
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = plotting.Stroke(n)
		line.Width = vg.Points(1.1)
		plotted.Add(line)
		for _, at := range points {
			plotted.Y.Max = max(plotted.Y.Max, at.Y)
		}
	}
	plotted.X.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "-6 h"}, {Value: hours / 2, Label: "-3 h"}, {Value: hours, Label: "now"}}
	style := plotting.Bare().Legend.TextStyle
	style.YAlign = draw.YBottom
	for n, name := range shown {
		style.Color = plotting.Stroke(n).Color
		if n == len(shown)-1 && len(p.Lines) > linesShown {
			name += fmt.Sprintf(" and %d more", len(p.Lines)-linesShown)
		}
		c.FillText(style, vg.Point{X: c.Min.X, Y: c.Min.Y + vg.Length(len(shown)-1-n)*lineHigh}, name)
	}
	plotted.Draw(draw.Crop(c, 0, 0, vg.Length(len(shown))*lineHigh+2, 0))
	return nil
}
