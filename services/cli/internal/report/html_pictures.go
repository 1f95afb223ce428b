package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// The pictures are made of elements, because their colours follow the reader's colour scheme through
// classes of the style sheet, and because the renderer escapes every text. Chart libraries write fixed
// colours.

// Sizes of the pictures in units of their viewBox.
const (
	pictureWidth = 720
	barHeight    = 16
	barRow       = 52
	cellSize     = 22
	cellStep     = 26
)

// bar is a bar of a chart, with its text and its class in the style sheet.
type bar struct {
	label, text, class string
	value              float64
}

// barChart draws horizontal bars from zero. The title and the description are for readers who do not
// see it.
func barChart(id, title, description string, bars []bar) *html.Node {
	most := 0.0
	for _, b := range bars {
		most = max(most, b.value)
	}
	var parts []*html.Node
	for i, b := range bars {
		width := 0.0
		if most > 0 {
			width = pictureWidth * b.value / most
		}
		y := i * barRow
		parts = append(parts,
			element("text", with("x", "0", "y", strconv.Itoa(y+16)), b.label),
			element("text", with("class", "value", "x", strconv.Itoa(pictureWidth), "y", strconv.Itoa(y+16), "text-anchor", "end"), b.text),
			rectangle("track", 0, float64(y+24), pictureWidth, barHeight), rectangle(b.class, 0, float64(y+24), width, barHeight))
	}
	return picture(id, title, description, max(1, len(bars))*barRow, parts)
}

func rectangle(class string, x, y, width, height float64) *html.Node {
	return element("rect", with("class", class, "x", formatUnits(x), "y", formatUnits(y), "width", formatUnits(width), "height", formatUnits(height), "rx", "2"))
}

// formatUnits formats a coordinate.
func formatUnits(v float64) string { return strconv.FormatFloat(roundTo(v, 10), 'f', -1, 64) }

// picture returns a picture with a title and a description.
func picture(id, title, description string, height int, parts []*html.Node) *html.Node {
	return element("svg", with("role", "img", "aria-labelledby", id+"-title "+id+"-description", "viewBox", fmt.Sprintf("0 0 %d %d", pictureWidth, height)),
		element("title", with("id", id+"-title"), title), element("desc", with("id", id+"-description"), description), parts)
}

// costChart compares the costs.
func costChart(r *CostReport) *html.Node {
	bars := []bar{{"Now", formatDollars(r.Now.Cost.PerHour) + " an hour", "now", r.Now.Cost.PerHour}}
	if r.Pending.Cost.PerHour > 0 {
		with := r.Now.Cost.PerHour + r.Pending.Cost.PerHour
		bars = append(bars, bar{"Now, with nodes for pending pods", formatDollars(with) + " an hour", "now", with})
	}
	bars = append(bars, bar{"After consolidation", formatDollars(r.After.Cost.PerHour) + " an hour", "after", r.After.Cost.PerHour})
	if r.Bound != nil {
		bars = append(bars, bar{"Lower bound", formatDollars(r.Bound.PerHour) + " an hour", "bound", r.Bound.PerHour})
	}
	var texts []string
	for _, b := range bars {
		texts = append(texts, b.label+": "+b.text)
	}
	return barChart("cost-chart", "Cost of the cluster", strings.Join(texts, "; ")+".", bars)
}

// obstacleChart compares what each obstacle costs.
func obstacleChart(r *CostReport) *html.Node {
	var bars []bar
	for _, o := range r.Obstacles {
		if o.SavingPerHour != nil && *o.SavingPerHour > 0 {
			bars = append(bars, bar{o.Title, formatDollars(*o.SavingPerHour) + " an hour", "obstacle", *o.SavingPerHour})
		}
	}
	if len(bars) == 0 {
		return nil
	}
	slices.SortStableFunc(bars, func(a, b bar) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return 0
	})
	var texts []string
	for _, b := range bars {
		texts = append(texts, b.label+": "+b.text)
	}
	return barChart("obstacle-chart", "What would be saved without each obstacle", strings.Join(texts, "; ")+".", bars)
}

// cellsMax is the maximum number of nodes in the map.
const cellsMax = 1000

// nodeMap draws each node as a cell, filled as far as its pods request CPU or memory. Nodes that would
// be removed are crossed out.
func nodeMap(r *CostReport) *html.Node {
	nodes := slices.Clone(r.Nodes)
	slices.SortStableFunc(nodes, func(a, b ReportNode) int {
		if c := strings.Compare(b.NodePool, a.NodePool); c != 0 { // Nodes outside of NodePools come last.
			return c
		}
		if a.Removed != b.Removed {
			return map[bool]int{true: 1, false: -1}[a.Removed]
		}
		return 0
	})
	shown := nodes[:min(len(nodes), cellsMax)]
	columns := pictureWidth / cellStep
	var parts []*html.Node
	removed := 0
	for i, n := range shown {
		parts = append(parts, nodeCell(n, float64(i%columns*cellStep)+1, float64(i/columns*cellStep)+1))
	}
	for _, n := range nodes {
		if n.Removed {
			removed++
		}
	}
	height := (max(1, len(shown))+columns-1)/columns*cellStep + 2
	return picture("node-map", "Map of the nodes", fmt.Sprintf("%s, of which %d would be removed. The table of nodes has the details.", simulate.FormatCount(len(nodes), "node"), removed), height, parts)
}

func nodeCell(n ReportNode, x, y float64) *html.Node {
	class, fate := "kept", "kept"
	switch {
	case n.Removed:
		class, fate = "gone", "would be removed"
	case n.NodePool == "":
		class, fate = "other", "outside of NodePools"
	}
	filled := cellSize * min(1, max(0, max(n.CPU, n.Memory)))
	out := element("g", nil, element("title", nil, fmt.Sprintf("%s, %s, %s an hour, CPU %s, memory %s: %s", n.Name, n.InstanceType, formatDollars(n.PricePerHour), formatShare(n.CPU), formatShare(n.Memory), fate)),
		rectangle("cell", x, y, cellSize, cellSize), rectangle(class, x, y+cellSize-filled, cellSize, filled))
	if n.Removed {
		out.AppendChild(element("path", with("class", "cross", "d", fmt.Sprintf("M%s %sl%d %dm0 -%dl-%d %d", formatUnits(x+3), formatUnits(y+3), cellSize-6, cellSize-6, cellSize-6, cellSize-6, cellSize-6))))
	}
	return out
}
