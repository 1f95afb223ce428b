package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Colours of about the same contrast on white and on near black.
var (
	ink  = color.NRGBA{0x80, 0x88, 0x92, 0xff}
	rule = color.NRGBA{0x80, 0x88, 0x92, 0x40}
	// strokes are the planners', in their order; the dashes are for those who
	// cannot tell the colours apart.
	strokes = []draw.LineStyle{
		{Color: color.NRGBA{0x3b, 0x82, 0xf6, 0xff}, Width: vg.Points(1.8)},
		{Color: color.NRGBA{0xd9, 0x77, 0x06, 0xff}, Width: vg.Points(1.8), Dashes: []vg.Length{vg.Points(4), vg.Points(2.5)}},
	}
)

const (
	small = vg.Length(9)
	usual = vg.Length(10.5)
)

// bare is an empty plot in these colours.
func bare() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.TextStyle.Color = ink
	sans(&p.Title.TextStyle.Font, usual)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Tick.Color, a.Tick.Label.Color, a.Label.TextStyle.Color = ink, ink, ink, ink
		sans(&a.Tick.Label.Font, small)
		sans(&a.Label.TextStyle.Font, usual)
	}
	return p
}

func sans(f *font.Font, size vg.Length) { f.Variant, f.Size = "Sans", size }

// grid are the horizontal lines.
func grid() plot.Plotter {
	g := plotter.NewGrid()
	g.Vertical.Color = nil
	g.Horizontal.Color, g.Horizontal.Width, g.Horizontal.Dashes = rule, vg.Points(0.6), nil
	return g
}

// drawn adds a planner's line: a dot for each plan, a ring for a partial one.
func drawn(p *plot.Plot, l line, stroke draw.LineStyle) error {
	if len(l.points) == 0 {
		return nil
	}
	path, dots, err := plotter.NewLinePoints(l.points)
	if err != nil {
		return err
	}
	path.LineStyle = stroke
	dots.GlyphStyle = draw.GlyphStyle{Color: stroke.Color, Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}
	p.Add(path, dots)
	if len(l.partial) == 0 {
		return nil
	}
	rings, err := plotter.NewScatter(l.partial)
	if err != nil {
		return err
	}
	rings.GlyphStyle = draw.GlyphStyle{Color: stroke.Color, Radius: vg.Points(5), Shape: draw.RingGlyph{}}
	p.Add(rings)
	return nil
}
