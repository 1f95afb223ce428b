package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/joist-autoscaler/joist/services/cli/internal/live"
)

// hostile are names that try to leave their place in the page.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=https://evil.example/x onerror=alert(1)>`, `</style></title></svg><script src=//evil.example>`,
	`' onmouseover='alert(1)`, "javascript:alert(1)", "a\u202eb\u2028", "&lt;b&gt;", `]]><!--`,
}

// fullReport returns a report in which every text is name, and every part is present.
func fullReport(name string) *CostReport {
	saving := 0.25
	return &CostReport{
		Cluster: name, Source: "cluster", Taken: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Prices: PriceSource{From: "embedded", Region: name},
		Now: ReportState{Nodes: 3, Managed: 2, Pods: 9, Cost: newCost(1.5), CPU: 0.3, Memory: 0.2, Unpriced: 1}, After: ReportState{Nodes: 2, Cost: newCost(1)},
		Pending: PendingState{Pods: 1, Nodes: 1, Cost: newCost(0.1)}, Saving: newCost(0.5), SavingPercent: 33.3, Bound: new(newCost(0.8)),
		NodePools: []PoolCost{{Name: name, NodesNow: 2, Now: 1.4}, {NodesNow: 1}},
		Commands: []ReportCommand{
			{Method: name, Removed: []string{name, name}, Replacements: []Replacement{{InstanceType: name}}, Why: name},
			{Method: "single", Removed: []string{name}, Replacements: []Replacement{{InstanceType: name}}},
		},
		Obstacles:   []ObstacleReport{{Name: name, Title: name, Nodes: 1, SavingPerHour: &saving, Details: []ObstacleDetails{{Rule: name, Detail: name, Nodes: []string{name}}}}},
		Nodes:       []ReportNode{{Name: name, NodePool: name, InstanceType: name, CPU: 1.4, Removed: true}, {Name: name, NodePool: name, Rule: name, Detail: name}, {Name: name}},
		Unscheduled: []UnscheduledPods{{Reason: name, Pods: []string{name}}},
		Unread:      []live.Unread{{Resource: name, Reason: name, Consequence: name, Check: name}},
		Assumptions: []string{name},
	}
}

// renderPage returns the page and its parsed elements.
func renderPage(t *testing.T, r *CostReport) (string, []*html.Node) {
	t.Helper()
	var out bytes.Buffer
	if err := PrintHTML(&out, r); err != nil {
		t.Fatal(err)
	}
	document, err := html.Parse(bytes.NewReader(bytes.TrimSpace(out.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	var elements []*html.Node
	for n := range document.Descendants() {
		if n.Type == html.ElementNode {
			elements = append(elements, n)
		}
	}
	var again bytes.Buffer
	if err := html.Render(&again, document); err != nil {
		t.Fatal(err)
	}
	// A parser corrects wrong nesting and unknown attributes, so that the second text would differ.
	if strings.TrimSpace(again.String()) != strings.TrimSpace(out.String()) {
		t.Errorf("the page is not valid: the parser changed it to\n%s\nfrom\n%s", again.String(), out.String())
	}
	return out.String(), elements
}

func attribute(n *html.Node, name string) string {
	at := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if at < 0 {
		return ""
	}
	return n.Attr[at].Val
}

// TestHostileNames: no name leaves its place, runs a script or loads anything.
func TestHostileNames(t *testing.T) {
	want, elements := renderPage(t, fullReport("plain"))
	shape := describeShape(elements)
	if !strings.Contains(want, "plain") {
		t.Error("the page lacks the names")
	}
	for _, name := range hostile {
		_, elements := renderPage(t, fullReport(name))
		if got := describeShape(elements); got != shape {
			t.Errorf("with the name %q the page has other elements:\n%s\nwant\n%s", name, got, shape)
		}
	}
}

// describeShape lists the elements and the names of their attributes.
func describeShape(elements []*html.Node) string {
	var out strings.Builder
	for _, n := range elements {
		out.WriteString(n.Data)
		for _, a := range n.Attr {
			out.WriteString(" " + a.Key)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestPageIsAccessible: the page has what screen readers and keyboards need, and loads nothing.
func TestPageIsAccessible(t *testing.T) {
	_, elements := renderPage(t, fullReport("shop"))
	ids, labels, counts := map[string]int{}, []string(nil), map[string]int{}
	for _, n := range elements {
		counts[n.Data]++
		if id := attribute(n, "id"); id != "" {
			ids[id]++
		}
		labels = append(labels, strings.Fields(attribute(n, "aria-labelledby"))...)
		if href := attribute(n, "href"); href != "" {
			if href != "data:," && !strings.HasPrefix(href, "#") {
				t.Errorf("<%s> refers to %s", n.Data, href)
			}
			labels = append(labels, strings.TrimPrefix(strings.TrimPrefix(href, "data:,"), "#"))
		}
		for _, a := range n.Attr {
			if a.Key == "src" || strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("<%s> has the attribute %s", n.Data, a.Key)
			}
		}
		checkElement(t, n)
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("the id %s occurs %d times", id, n)
		}
	}
	for _, id := range labels {
		if id != "" && ids[id] == 0 {
			t.Errorf("the id %s does not exist", id)
		}
	}
	if counts["h1"] != 1 || counts["main"] != 1 || counts["script"] != 0 || counts["img"] != 0 || counts["iframe"] != 0 || counts["svg"] != 3 || counts["table"] != 6 {
		t.Errorf("the page has the elements %v", counts)
	}
	if strings.Contains(styleSheet, "url(") || strings.Contains(styleSheet, "@import") || strings.Contains(styleSheet, "http") {
		t.Error("the style sheet loads something")
	}
}

// checkElement checks an element's parts for readers who do not see the page.
func checkElement(t *testing.T, n *html.Node) {
	t.Helper()
	children := func(name string) (out []*html.Node) {
		for c := range n.ChildNodes() {
			if c.Data == name {
				out = append(out, c)
			}
		}
		return out
	}
	switch n.Data {
	case "html":
		if attribute(n, "lang") == "" {
			t.Error("the page has no language")
		}
	case "table":
		if len(children("caption")) != 1 {
			t.Error("a table has no caption")
		}
	case "th":
		if scope := attribute(n, "scope"); scope != "col" && scope != "row" {
			t.Errorf("a header cell has the scope %q", scope)
		}
	case "svg":
		if attribute(n, "role") != "img" || len(children("title")) != 1 || len(children("desc")) != 1 || len(strings.Fields(attribute(n, "aria-labelledby"))) != 2 {
			t.Errorf("a picture has no role, title or description: %v", n.Attr)
		}
	case "section":
		if len(children("h2")) != 1 || attribute(n, "aria-labelledby") == "" {
			t.Error("a section has no heading")
		}
	}
}

// TestLargeNodeMap: the map has a limited number of cells, and the table all nodes.
func TestLargeNodeMap(t *testing.T) {
	r := fullReport("shop")
	for i := range 3 * cellsMax {
		r.Nodes = append(r.Nodes, ReportNode{Name: fmt.Sprintf("node-%d", i), NodePool: "default"})
	}
	page, elements := renderPage(t, r)
	cells := 0
	for _, n := range elements {
		if attribute(n, "class") == "cell" {
			cells++
		}
	}
	if cells != cellsMax || !strings.Contains(page, "node-2999") || !strings.Contains(page, "The first 1000 nodes are drawn.") {
		t.Errorf("%d cells", cells)
	}
}

// TestFormatMonth formats whole dollars in groups.
func TestFormatMonth(t *testing.T) {
	for value, want := range map[float64]string{0: "$0", 999.4: "$999", 1000: "$1,000", 1234567.8: "$1,234,568"} {
		if got := formatMonth(value); got != want {
			t.Errorf("%f is %s, want %s", value, got, want)
		}
	}
}
