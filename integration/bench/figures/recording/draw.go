package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The window: characters and lines, and their size in pixels.
const (
	columns    = 118
	rows       = 27
	charWidth  = 7.2
	lineHeight = 17
	margin     = 14
)

// The pace: a line, the pause after a table or before a new part, and at the end.
const (
	perLine = 90 * time.Millisecond
	pause   = 1300 * time.Millisecond
	rest    = 6 * time.Second
)

const style = `text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: #c9d1d9; white-space: pre }
.part { fill: #79c0ff; font-weight: 600 }
.done { fill: #7ee787; font-weight: 600 }
.table { fill: #8b949e }
`

// draw returns the recording of a command's output.
func draw(output []string) []byte {
	lines := append([]string{"$ make demo"}, output...)
	width, height := float64(columns)*charWidth+2*margin, rows*lineHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-labelledby="title desc">`+"\n", width, height, width, height)
	b.WriteString("<title id=\"title\">A recording of make demo</title>\n")
	fmt.Fprintf(&b, "<desc id=\"desc\">%s</desc>\n", escape("Five pods become pending and get nodes, a spot node is reclaimed and replaced, and all nodes are removed. The last lines: "+strings.Join(lines[len(lines)-2:], " ")))
	fmt.Fprintf(&b, "<style>\n%s%s</style>\n", style, animation(lines))
	fmt.Fprintf(&b, "<defs><clipPath id=\"window\"><rect x=\"0\" y=\"%d\" width=\"%.0f\" height=\"%d\"/></clipPath></defs>\n", margin, width, rows*lineHeight)
	b.WriteString("<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n<g clip-path=\"url(#window)\"><g id=\"text\">\n")
	for i, line := range lines {
		if text := shorten(line); text != "" {
			fmt.Fprintf(&b, "<text%s x=\"%d\" y=\"%d\">%s</text>\n", class(line), margin, margin+lineHeight*i+13, escape(text))
		}
	}
	fmt.Fprintf(&b, "</g><rect id=\"cover\" y=\"%d\" width=\"100%%\" height=\"%d\" fill=\"#0d1117\"/></g>\n</svg>\n", margin, rows*lineHeight)
	return b.Bytes()
}

// animation returns the rules that show one more line at each step: a cover moves down until the window is full, and then the
// text moves up.
func animation(lines []string) string {
	var text, cover strings.Builder
	at, total := time.Duration(0), duration(lines)
	for i := range lines {
		at += delay(lines, i)
		const keyframe = "%.2f%% { transform: translateY(%dpx) }\n"
		percent := 100 * at.Seconds() / total.Seconds()
		if i < rows {
			fmt.Fprintf(&cover, keyframe, percent, (i+1)*lineHeight)
		}
		if i == 0 || i >= rows {
			fmt.Fprintf(&text, keyframe, percent, scroll(i))
		}
	}
	end := scroll(len(lines) - 1)
	return fmt.Sprintf("#text, #cover { animation: %.1fs step-end infinite }\n#text { animation-name: text; transform: translateY(%dpx) }\n"+
		"#cover { animation-name: cover; transform: translateY(%dpx) }\n@keyframes text {\n%s}\n@keyframes cover {\n%s}\n"+
		"@media (prefers-reduced-motion: reduce) { #text, #cover { animation: none } }\n", total.Seconds(), end, rows*lineHeight, text.String(), cover.String())
}

// scroll returns the place of the text at which line i is the last one in a full window.
func scroll(i int) int { return min(rows-1-i, 0) * lineHeight }

// delay returns the time before a line appears. A table appears at once.
func delay(lines []string, i int) time.Duration {
	switch {
	case i == 0:
		return 0
	case strings.HasPrefix(lines[i], "▸"), strings.HasPrefix(lines[i], "✓"), lines[i] == "" && isTable(lines[i-1]):
		return pause
	case isTable(lines[i]):
		return perLine / 3
	default:
		return perLine
	}
}

func duration(lines []string) time.Duration {
	total := rest
	for i := range lines {
		total += delay(lines, i)
	}
	return total
}

func isTable(line string) bool { return strings.ContainsAny(line, "│┌└├") }

func class(line string) string {
	switch {
	case strings.HasPrefix(line, "▸"), strings.HasPrefix(line, "$ "):
		return ` class="part"`
	case strings.HasPrefix(line, "✓"):
		return ` class="done"`
	case isTable(line):
		return ` class="table"`
	default:
		return ""
	}
}

// shorten cuts a line that is wider than the window.
func shorten(line string) string {
	line = strings.TrimRight(line, " ")
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-1]) + "…"
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // A buffer accepts every write.
	return b.String()
}
