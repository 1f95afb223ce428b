package storm

import (
	"gonum.org/v1/plot"

	"github.com/joist-autoscaler/joist/integration/palette"
)

// panel is an empty plot with a name on its vertical axis.
func panel(name string) *plot.Plot {
	p := palette.Bare()
	p.Legend.Top = true
	p.Y.Label.Text = name
	p.Add(palette.Grid())
	return p
}
