package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// styleSheet is the style of the page. It has no url(), so nothing is loaded.
//
//go:embed report.css
var styleSheet string

// contentPolicy forbids the page to load or run anything.
const contentPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

// PrintHTML writes a report as one page that needs no other file and no script. Every text is escaped.
func PrintHTML(w io.Writer, r *CostReport) error {
	document := &html.Node{Type: html.DocumentNode}
	document.AppendChild(&html.Node{Type: html.DoctypeNode, Data: "html"})
	title := "Cost of the cluster " + r.Cluster
	document.AppendChild(element("html", with("lang", "en"),
		element("head", nil,
			element("meta", with("charset", "utf-8")),
			element("meta", with("name", "viewport", "content", "width=device-width, initial-scale=1")),
			element("meta", with("http-equiv", "Content-Security-Policy", "content", contentPolicy)),
			element("meta", with("name", "color-scheme", "content", "light dark")),
			element("title", nil, title),
			element("link", with("rel", "icon", "href", "data:,")),
			element("style", nil, styleSheet)),
		element("body", nil,
			element("a", with("class", "skip", "href", "#main"), "Skip to the report"),
			element("header", nil, element("h1", nil, title), element("p", nil, summarize(r)),
				element("p", with("class", "muted"), r.formatSource())),
			element("main", with("id", "main", "tabindex", "-1"), pageSections(r)),
			element("footer", nil, element("p", nil, "Written by joist report. The simulation applies all commands at once, within the budgets, and skips waiting times. A month has 730 hours.")))))
	var page bytes.Buffer // The writer needs whole characters.
	if err := html.Render(&page, document); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	page.WriteByte('\n')
	_, err := w.Write(page.Bytes())
	return err
}

// summarize describes the result in a sentence.
func summarize(r *CostReport) string {
	out := fmt.Sprintf("%s with %s cost %s an hour.", simulate.FormatCount(r.Now.Nodes, "node"), simulate.FormatCount(r.Now.Pods, "pod"), formatDollars(r.Now.Cost.PerHour))
	if r.Saving.PerHour > 0 {
		out += fmt.Sprintf(" Consolidation would save %s a month (%.1f %%).", formatMonth(r.Saving.PerMonth), r.SavingPercent)
	} else {
		out += " Consolidation would save nothing."
	}
	return out
}

// pageSections returns the sections that the report has.
func pageSections(r *CostReport) []*html.Node {
	out := []*html.Node{costSection(r), nodesSection(r), commandsSection(r), obstaclesSection(r), poolsSection(r)}
	if len(r.Unscheduled) > 0 {
		t := dataTable{id: "unscheduled-table", caption: "Pods that no node can hold", header: []string{"Reason", "Pods"}, numbers: map[int]bool{}}
		for _, u := range r.Unscheduled {
			t.rows = append(t.rows, []string{u.Reason, formatNames(u.Pods)})
		}
		out = append(out, section("unscheduled", "Unschedulable pods", t.render()))
	}
	if len(r.Unread) > 0 {
		t := dataTable{id: "unread-table", caption: "What you may not read, and what that means", header: []string{"Resource", "Reason", "Consequence", "Check"}, numbers: map[int]bool{}}
		for _, u := range r.Unread {
			t.rows = append(t.rows, []string{u.Resource, u.Reason, u.Consequence, u.Check})
		}
		out = append(out, section("unread", "Resources that were not read", t.render()))
	}
	if len(r.Assumptions) > 0 {
		list := element("ul", nil)
		for _, text := range r.Assumptions {
			list.AppendChild(element("li", nil, text))
		}
		out = append(out, section("assumptions", "Assumptions", list))
	}
	return out
}

func costSection(r *CostReport) *html.Node {
	card := func(name string, c Cost, note string) *html.Node {
		return element("div", nil, element("dt", nil, name), element("dd", with("class", "big"), formatMonth(c.PerMonth)+" a month"),
			element("dd", nil, formatDollars(c.PerHour)+" an hour"), element("dd", with("class", "muted"), note))
	}
	cards := element("dl", with("class", "cards"),
		card("Now", r.Now.Cost, fmt.Sprintf("%s, CPU %s, memory %s", simulate.FormatCount(r.Now.Nodes, "node"), formatShare(r.Now.CPU), formatShare(r.Now.Memory))),
		card("After consolidation", r.After.Cost, fmt.Sprintf("%s, CPU %s, memory %s", simulate.FormatCount(r.After.Nodes, "node"), formatShare(r.After.CPU), formatShare(r.After.Memory))))
	if r.Bound != nil {
		cards.AppendChild(card("Lower bound", *r.Bound, "no nodes of the NodePools that hold the pods cost less"))
	}
	var notes []*html.Node
	if r.Pending.Pods > 0 {
		notes = append(notes, element("p", nil, fmt.Sprintf("Before that, the pending pods (%d) are placed, with %s for %s an hour.", r.Pending.Pods, simulate.FormatCount(r.Pending.Nodes, "new node"), formatDollars(r.Pending.Cost.PerHour))))
	}
	if r.Now.Unpriced > 0 {
		notes = append(notes, element("p", nil, simulate.FormatCount(r.Now.Unpriced, "node")+" without a known price count as $0."))
	}
	return section("cost", "Cost", cards, notes, costChart(r))
}

func nodesSection(r *CostReport) *html.Node {
	t := dataTable{
		id: "nodes-table", caption: "Nodes that exist now", header: []string{"Node", "NodePool", "Instance type", "Capacity", "$/hour", "Pods", "CPU", "Memory", "What would happen"},
		numbers: map[int]bool{4: true, 5: true, 6: true, 7: true},
	}
	for _, n := range r.Nodes {
		fate := "removed"
		if !n.Removed {
			fate = "kept (" + n.Rule + "): " + n.Detail
		}
		t.rows = append(t.rows, []string{n.Name, n.NodePool, n.InstanceType, n.CapacityType, formatDollars(n.PricePerHour), strconv.Itoa(n.Pods), formatShare(n.CPU), formatShare(n.Memory), fate})
	}
	legend := "Each square is a node, filled as far as its pods request CPU or memory, whichever is more. Crossed-out nodes would be removed; grey ones are outside of NodePools."
	if len(r.Nodes) > cellsMax {
		legend += fmt.Sprintf(" The first %d nodes are drawn.", cellsMax)
	}
	return section("nodes", "Nodes", element("p", with("class", "muted"), legend), nodeMap(r),
		element("details", nil, element("summary", nil, "All "+simulate.FormatCount(len(r.Nodes), "node")), t.render()))
}

func commandsSection(r *CostReport) *html.Node {
	if len(r.Commands) == 0 {
		return section("commands", "Which nodes would go, and why", element("p", nil, "Consolidation would remove no node."))
	}
	t := dataTable{
		id: "commands-table", caption: "Commands of disruption, in their order", header: []string{"Command", "Saves an hour", "Removes", "Launches", "Pods moved", "Why"},
		numbers: map[int]bool{1: true, 4: true},
	}
	for i, c := range r.Commands {
		t.rows = append(t.rows, []string{
			fmt.Sprintf("%d: %s", i+1, c.Method), formatDollars(c.SavedPerHour), strings.Join(c.Removed, ", "), formatReplacements(c.Replacements), strconv.Itoa(c.PodsMoved), c.Reason(),
		})
	}
	return section("commands", "Which nodes would go, and why", t.render())
}

func obstaclesSection(r *CostReport) *html.Node {
	if len(r.Obstacles) == 0 {
		return section("obstacles", "What stands in the way", element("p", nil, r.describeNoObstacle()))
	}
	t := dataTable{
		id: "obstacles-table", caption: "What keeps nodes that consolidation might otherwise remove", header: []string{"Reason", "Nodes", "They cost an hour", "Saved without it", "Details"},
		numbers: map[int]bool{1: true, 2: true, 3: true},
	}
	for _, o := range r.Obstacles {
		t.rows = append(t.rows, []string{o.Title, strconv.Itoa(o.Nodes), formatDollars(o.PerHour), FormatSaving(o.SavingPerHour), formatDetails(o.Details)})
	}
	return section("obstacles", "What stands in the way", obstacleChart(r), t.render())
}

// detailsMax is the number of reasons that a row has. The table of nodes has all.
const detailsMax = 3

// formatDetails formats the first reasons with their nodes.
func formatDetails(list []ObstacleDetails) string {
	var out []string
	for _, d := range list[:min(len(list), detailsMax)] {
		out = append(out, d.Detail+" ("+formatNames(d.Nodes)+")")
	}
	if more := len(list) - detailsMax; more > 0 {
		out = append(out, "and "+simulate.FormatCount(more, "more reason"))
	}
	return strings.Join(out, "; ")
}

func poolsSection(r *CostReport) *html.Node {
	t := dataTable{
		id: "pools-table", caption: "Cost of each NodePool", header: []string{"NodePool", "Nodes now", "Nodes after", "$/hour now", "$/hour after"},
		numbers: map[int]bool{1: true, 2: true, 3: true, 4: true},
	}
	for _, p := range r.NodePools {
		name := p.Name
		if name == "" {
			name = "(outside of NodePools)"
		}
		t.rows = append(t.rows, []string{name, strconv.Itoa(p.NodesNow), strconv.Itoa(p.NodesAfter), formatDollars(p.Now), formatDollars(p.After)})
	}
	return section("pools", "NodePools", t.render())
}
