package report

import (
	"golang.org/x/net/html"
)

// element returns an element of a page. The attributes are pairs of a name and a value. A child is a
// *html.Node, a list of them, or a text, which the renderer escapes. A nil child is left out.
func element(tag string, attributes []string, children ...any) *html.Node {
	out := &html.Node{Type: html.ElementNode, Data: tag}
	for i := 0; i+1 < len(attributes); i += 2 {
		out.Attr = append(out.Attr, html.Attribute{Key: attributes[i], Val: attributes[i+1]})
	}
	for _, child := range children {
		switch c := child.(type) {
		case *html.Node:
			if c != nil {
				out.AppendChild(c)
			}
		case []*html.Node:
			for _, one := range c {
				out.AppendChild(one)
			}
		case string:
			out.AppendChild(&html.Node{Type: html.TextNode, Data: c})
		}
	}
	return out
}

// with returns a list of attributes.
func with(pairs ...string) []string { return pairs }

// section returns a part of the page with a heading.
func section(id, title string, children ...any) *html.Node {
	return element("section", with("aria-labelledby", id), append([]any{element("h2", with("id", id), title)}, children...)...)
}

// dataTable is a table of the page.
type dataTable struct {
	id, caption string
	header      []string
	// numbers are the columns to align right, counted from 0.
	numbers map[int]bool
	rows    [][]string
}

// render returns the table in a region that scrolls, which the keyboard can reach. The first column
// has the headers of the rows.
func (t dataTable) render() *html.Node {
	head := element("tr", nil)
	for i, name := range t.header {
		head.AppendChild(element("th", t.cellAttributes(i, "col"), name))
	}
	body := element("tbody", nil)
	for _, row := range t.rows {
		line := element("tr", nil)
		for i, text := range row {
			if i == 0 {
				line.AppendChild(element("th", t.cellAttributes(i, "row"), text))
			} else {
				line.AppendChild(element("td", t.cellAttributes(i, ""), text))
			}
		}
		body.AppendChild(line)
	}
	return element("div", with("class", "scroll", "role", "region", "tabindex", "0", "aria-labelledby", t.id),
		element("table", nil, element("caption", with("id", t.id), t.caption), element("thead", nil, head), body))
}

func (t dataTable) cellAttributes(column int, scope string) []string {
	var out []string
	if scope != "" {
		out = append(out, "scope", scope)
	}
	if t.numbers[column] {
		out = append(out, "class", "number")
	}
	return out
}
