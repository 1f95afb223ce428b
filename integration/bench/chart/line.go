package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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
