package storm

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Colours of about the same contrast on white and on near black; the dashes are
// for those who cannot tell the colours apart.
var (
	ink     = color.NRGBA{0x80, 0x88, 0x92, 0xff}
	rule    = color.NRGBA{0x80, 0x88, 0x92, 0x60}
	strokes = []draw.LineStyle{
		{Color: color.NRGBA{0x3b, 0x82, 0xf6, 0xff}, Width: vg.Points(1.6)},
		{Color: color.NRGBA{0xd9, 0x77, 0x06, 0xff}, Width: vg.Points(1.6), Dashes: []vg.Length{vg.Points(4), vg.Points(2.5)}},
		{Color: color.NRGBA{0xdc, 0x26, 0x26, 0xff}, Width: vg.Points(1.6), Dashes: []vg.Length{vg.Points(1.5), vg.Points(2)}},
	}
)

const (
	fine  = vg.Length(9)
	usual = vg.Length(10.5)
)

// panel is an empty plot in these colours, with a name on its vertical axis.
func panel(name string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Legend.TextStyle.Color = ink
	p.Legend.Top = true
	sans(&p.Legend.TextStyle.Font, fine)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Tick.Color, a.Tick.Label.Color, a.Label.TextStyle.Color = ink, ink, ink, ink
		sans(&a.Tick.Label.Font, fine)
		sans(&a.Label.TextStyle.Font, usual)
	}
	p.Y.Label.Text = name
	g := plotter.NewGrid()
	g.Vertical.Color = nil
	g.Horizontal.Color, g.Horizontal.Width, g.Horizontal.Dashes = color.NRGBA{0x80, 0x88, 0x92, 0x40}, vg.Points(0.6), nil
	p.Add(g)
	return p
}

func sans(f *font.Font, size vg.Length) { f.Variant, f.Size = "Sans", size }
