package timeline

import (
	"errors"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/joist-autoscaler/joist/integration/environment/plotting"
)

// Dimensions of the picture.
const (
	width      = 860
	height     = 620
	headHeight = 20
)

// Act is a part of a test. Times are since the beginning.
type Act struct {
	Name string        `json:"name"`
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// SVG draws panels below each other, from the beginning to the end. It modifies them.
func SVG(end time.Duration, acts []Act, panels ...*plot.Plot) ([]byte, error) {
	if len(panels) == 0 {
		return nil, errors.New("drawing a timeline: there are no panels")
	}
	panels[len(panels)-1].X.Label.Text = "seconds since the beginning"
	var grid [][]*plot.Plot
	for _, p := range panels {
		p.X.Min, p.X.Max = 0, max(end.Seconds(), 1)
		p.Add(starts{acts})
		grid = append(grid, []*plot.Plot{p})
	}
	canvas := vgsvg.New(width, height)
	c := draw.New(canvas)
	tiles := draw.Tiles{Rows: len(grid), Cols: 1, PadY: 10, PadTop: headHeight, PadRight: 10, PadBottom: 2, PadLeft: 2}
	canvases := plot.Align(grid, tiles, c)
	for i, p := range panels {
		placeLegend(p, canvases[i][0])
		p.Draw(canvases[i][0])
	}
	nameActs(c, canvases[0][0], panels[0], acts)
	return plotting.WriteSVG(canvas)
}

// placeLegend places a legend at the right end, with space for text that another font makes a quarter wider.
func placeLegend(p *plot.Plot, c draw.Canvas) {
	const wider = 1.25
	data := p.DataCanvas(c)
	p.Legend.Left = true
	p.Legend.XOffs = data.Size().X - wider*p.Legend.Rectangle(data).Size().X
}

// starts draws a line where each act begins.
type starts struct{ acts []Act }

// Plot implements plot.Plotter.
func (s starts) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, act := range s.acts {
		at := x(act.From.Seconds())
		c.StrokeLine2(draw.LineStyle{Color: plotting.Faint(0x60), Width: vg.Points(0.8)}, at, c.Min.Y, at, c.Max.Y)
	}
}

// nameActs writes the names above the first panel, each over its act if it is long
// enough.
func nameActs(c, first draw.Canvas, p *plot.Plot, acts []Act) {
	data := p.DataCanvas(first)
	x, _ := p.Transforms(&data)
	style := p.Y.Label.TextStyle
	style.Rotation, style.XAlign, style.YAlign = 0, draw.XLeft, draw.YCenter
	style.Font.Size = plotting.Small
	for _, act := range acts {
		from, to := x(act.From.Seconds()), x(act.To.Seconds())
		if style.Width(act.Name) <= to-from {
			c.FillText(style, vg.Point{X: from, Y: c.Max.Y - headHeight/2}, act.Name)
		}
	}
}
