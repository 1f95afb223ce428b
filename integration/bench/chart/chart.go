package chart

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/environment/plotting"
)

// Dimensions of the picture.
const (
	panelWidth = 118
	axisWidth  = 50
	height     = 380
	headHeight = 26
)

// SVG draws the figures of one or two planners.
func SVG(rows []contest.Row) ([]byte, error) {
	all := panels(rows)
	if len(all) == 0 {
		return nil, errors.New("drawing the figures: there are no figures")
	}
	canvas := vgsvg.New(vg.Length(axisWidth+panelWidth*len(all)), height)
	if err := paint(draw.New(canvas), all); err != nil {
		return nil, fmt.Errorf("drawing the figures: %w", err)
	}
	return plotting.WriteSVG(canvas)
}

// paint draws a row of costs above a row of CPU times.
func paint(c draw.Canvas, all []panel) error {
	costs, times, err := plots(all)
	if err != nil {
		return err
	}
	head(c, all[0].cost)
	grid := [][]*plot.Plot{costs, times}
	tiles := draw.Tiles{Rows: len(grid), Cols: len(all), PadX: 8, PadY: 14, PadTop: headHeight, PadRight: 6, PadBottom: 2}
	canvases := plot.Align(grid, tiles, c)
	for i, row := range grid {
		for j, p := range row {
			p.Draw(canvases[i][j])
		}
	}
	return nil
}

func plots(all []panel) (costs, times []*plot.Plot, err error) {
	_, dearest := reach(all, func(p panel) []line { return p.cost })
	fastest, slowest := reach(all, func(p panel) []line { return p.seconds })
	for i, one := range all {
		cost, time := plotting.Bare(), plotting.Bare()
		cost.Title.Text, cost.Title.TextStyle.Font.Size = one.title, plotting.Small
		cost.Add(plotting.Grid())
		time.Add(plotting.Grid())
		for n := range one.cost {
			err = errors.Join(err, drawn(cost, one.cost[n], plotting.Stroke(n)), drawn(time, one.seconds[n], plotting.Stroke(n)))
		}
		byPods(cost, all)
		byPods(time, all)
		cost.Y.Min, cost.Y.Max = 1, math.Ceil(max(dearest, 1.1)*10)/10
		if time.Y.Min, time.Y.Max = decades(fastest, slowest); time.Y.Min > 0 {
			time.Y.Scale, time.Y.Tick.Marker = plot.LogScale{}, durations{}
		}
		if i == 0 {
			cost.Y.Label.Text, time.Y.Label.Text = "cost ÷ lower bound", "CPU time of planning"
		} else {
			unnamed(cost)
			unnamed(time)
		}
		costs, times = append(costs, cost), append(times, time)
	}
	return costs, times, err
}

// unnamed keeps the tick marks of the vertical axis and removes their labels, which only
// the first panel of the row has.
func unnamed(p *plot.Plot) { p.Y.Tick.Marker = silent{p.Y.Tick.Marker} }

// byPods sets the horizontal axis: the same range for all panels.
func byPods(p *plot.Plot, all []panel) {
	var sizes []float64
	for _, one := range all {
		for _, l := range one.seconds {
			for _, at := range l.points {
				sizes = append(sizes, at.X)
			}
		}
	}
	p.X.Tick.Marker = sizesOf(sizes)
	p.X.Scale = plot.LogScale{}
	p.X.Min, p.X.Max = decades(sizesRange(sizes))
}

// head draws the planners' names in their colours.
func head(c draw.Canvas, lines []line) {
	style := plotting.Bare().Title.TextStyle
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	x, y := c.Min.X+axisWidth, c.Max.Y-headHeight/2
	for n, l := range lines {
		c.StrokeLine2(plotting.Stroke(n), x, y, x+22, y)
		style.Color = plotting.Stroke(n).Color
		c.FillText(style, vg.Point{X: x + 27, Y: y}, l.planner)
		x += 27 + style.Width(l.planner) + 24
	}
	style.Color = plotting.Ink
	c.FillText(style, vg.Point{X: x, Y: y}, "by number of pending pods; a ring: not all of them were placed")
}
