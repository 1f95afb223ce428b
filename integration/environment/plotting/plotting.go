// Package plotting defines the style of the project's drawings: colours of similar
// contrast on white and on near black, lines that also differ in their dashes for
// colour-blind readers, and plots without a background.
package plotting

import (
	"bytes"
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Ink is the colour of text and axes.
var Ink = color.NRGBA{0x80, 0x88, 0x92, 0xff}

// Sizes of text.
const (
	Small = vg.Length(9)
	Usual = vg.Length(10.5)
)

var strokes = []draw.LineStyle{
	{Color: color.NRGBA{0x3b, 0x82, 0xf6, 0xff}},
	{Color: color.NRGBA{0xd9, 0x77, 0x06, 0xff}, Dashes: []vg.Length{vg.Points(4), vg.Points(2.5)}},
	{Color: color.NRGBA{0xdc, 0x26, 0x26, 0xff}, Dashes: []vg.Length{vg.Points(1.5), vg.Points(2)}},
}

// Stroke returns the style of the i-th line of a drawing; there are three.
func Stroke(i int) draw.LineStyle {
	stroke := strokes[i]
	stroke.Width = vg.Points(1.8)
	return stroke
}

// Faint returns the ink with an alpha.
func Faint(alpha uint8) color.NRGBA {
	out := Ink
	out.A = alpha
	return out
}

// Bare returns an empty plot.
func Bare() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.TextStyle.Color, p.Legend.TextStyle.Color = Ink, Ink
	setSans(&p.Title.TextStyle.Font, Usual)
	setSans(&p.Legend.TextStyle.Font, Small)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Tick.Color, a.Tick.Label.Color, a.Label.TextStyle.Color = Ink, Ink, Ink, Ink
		setSans(&a.Tick.Label.Font, Small)
		setSans(&a.Label.TextStyle.Font, Usual)
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = shortTicks{}, shortTicks{}
	return p
}

// shortTicks are gonum's ticks with the shortest labels: 2500 and not 2500.00.
type shortTicks struct{ plot.DefaultTicks }

// Ticks implements plot.Ticker.
func (s shortTicks) Ticks(low, high float64) []plot.Tick {
	ticks := s.DefaultTicks.Ticks(low, high)
	for i, tick := range ticks {
		if value, err := strconv.ParseFloat(tick.Label, 64); err == nil {
			ticks[i].Label = strconv.FormatFloat(value, 'f', -1, 64)
		}
	}
	return ticks
}

// WriteSVG returns a canvas as SVG. Its text has a fallback for machines without the font with which it was measured.
func WriteSVG(canvas *vgsvg.Canvas) ([]byte, error) {
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("writing the drawing: %w", err)
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// Grid returns horizontal lines.
func Grid() plot.Plotter {
	g := plotter.NewGrid()
	g.Vertical.Color = nil
	g.Horizontal.Color, g.Horizontal.Width, g.Horizontal.Dashes = Faint(0x40), vg.Points(0.6), nil
	return g
}

// setSans sets a font without serifs.
func setSans(f *font.Font, size vg.Length) { f.Variant, f.Size = "Sans", size }
