package report

import (
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// gaps are the numbers of blanks between two columns: if the table fits the terminal, if its columns
// are shortened, and if it does not fit otherwise.
var gaps = [...]int{3, 2, 1}

// proseMin is the smallest width to which columns with sentences are shortened before others are.
const proseMin = 24

// PrintColumns prints a table like kubectl. numbers are the columns to align right, counted from
// 1. Line breaks in a cell become blanks, so that no text of a message can add a row. On a terminal,
// which is a w with the method Columns() int, the cells of long columns are wrapped so that the
// table fits its width, and a table that cannot fit has a paragraph for each row; elsewhere every
// row is one line.
func PrintColumns(w io.Writer, header []string, rows [][]string, numbers ...int) error {
	_, err := io.WriteString(w, formatColumns(terminalColumns(w), header, rows, numbers...))
	return err
}

// FormatColumns formats a table like PrintColumns, for no terminal.
func FormatColumns(header []string, rows [][]string, numbers ...int) string {
	return formatColumns(0, header, rows, numbers...)
}

// terminalColumns returns the width of the terminal to which w writes, or 0.
func terminalColumns(w io.Writer) int {
	if terminal, ok := w.(interface{ Columns() int }); ok {
		return terminal.Columns()
	}
	return 0
}

// IsWide reports whether tables in w have all columns and whole texts, which is a w with the
// method IsWide() bool that returns true.
func IsWide(w io.Writer) bool {
	wide, ok := w.(interface{ IsWide() bool })
	return ok && wide.IsWide()
}

// formatColumns formats a table for a terminal with a width, 0 for no limit.
func formatColumns(width int, header []string, rows [][]string, numbers ...int) string {
	t := table.NewWriter()
	style := plainStyle()
	cells := make([][]string, 0, len(rows)+1)
	for _, row := range append([][]string{header}, rows...) {
		cells = append(cells, joinLines(row))
	}
	limits, gap, fits := fitColumns(width, cells, numbers)
	if !fits {
		return formatParagraphs(cells)
	}
	style.Box.PaddingRight = strings.Repeat(" ", gap)
	t.SetStyle(style)
	t.AppendHeader(tableRow(cells[0]))
	for _, row := range cells[1:] {
		t.AppendRow(tableRow(row))
	}
	configs := make([]table.ColumnConfig, len(header))
	for i := range configs {
		configs[i].Number = i + 1
		if slices.Contains(numbers, i+1) {
			configs[i] = alignRight(i + 1)
		}
		if limits != nil {
			configs[i].WidthMax, configs[i].WidthMaxEnforcer = limits[i], wrapCell
		}
	}
	t.SetColumnConfigs(configs)
	return renderTable(t)
}

// formatParagraphs formats each row as lines with the header and the cell of each column.
func formatParagraphs(cells [][]string) string {
	var out strings.Builder
	widest := 0
	for _, title := range cells[0] {
		widest = max(widest, text.StringWidth(title))
	}
	for i, row := range cells[1:] {
		if i > 0 {
			out.WriteString("\n")
		}
		for column, cell := range row {
			out.WriteString(strings.TrimRight(text.Pad(cells[0][column], widest+gaps[1], ' ')+cell, " ") + "\n")
		}
	}
	return out.String()
}

// fitColumns returns the widths of the columns with which a table fits a terminal, or nil if it
// needs no limits. It takes columns from the widest ones: first of headers and sentences, then of
// words and names. It also returns the number of blanks between columns, and reports whether the
// table fits.
func fitColumns(width int, cells [][]string, numbers []int) (fitted []int, gap int, fits bool) {
	count, total := len(cells[0]), 0
	widths, prose, least := make([]int, count), make([]int, count), make([]int, count)
	for column := range count {
		body, isProse := 0, false
		for i, row := range cells {
			cell := text.StringWidth(row[column])
			widths[column] = max(widths[column], cell)
			if i > 0 {
				body, isProse = max(body, cell), isProse || strings.Contains(row[column], " ")
			}
		}
		total += widths[column]
		title := longestPart(cells[:1], column, false)
		prose[column], least[column] = max(body, title), max(body, title)
		switch {
		case isProse:
			prose[column] = max(min(body, proseMin), title)
			least[column] = max(min(longestPart(cells[1:], column, false), proseMin), title)
		case !slices.Contains(numbers, column+1):
			least[column] = max(longestPart(cells[1:], column, true), title)
		}
	}
	if width == 0 || total+gaps[0]*(count-1) <= width {
		return nil, gaps[0], true
	}
	for _, gap := range gaps[1:] {
		available, fitted := width-gap*(count-1), slices.Clone(widths)
		rest := shrinkColumns(fitted, prose, total, available)
		if rest = shrinkColumns(fitted, least, rest, available); rest <= available {
			return fitted, gap, true
		}
	}
	return nil, gaps[0], false
}

// shrinkColumns takes from the widest columns, but not below their least widths, until the total
// is at most available. It returns the new total.
func shrinkColumns(widths, least []int, total, available int) int {
	for total > available {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return total
}

// longestPart returns the width of the longest part of a column at which wrapCell does not break:
// a word, or with names a part of a name.
func longestPart(cells [][]string, column int, names bool) (longest int) {
	for _, row := range cells {
		for word := range strings.FieldsSeq(row[column]) {
			for names && word != "" {
				end := nameEnd(word, len(word))
				longest, word = max(longest, text.StringWidth(word[:end])), word[end:]
			}
			longest = max(longest, text.StringWidth(word))
		}
	}
	return longest
}

// nameEnd returns the length of the first part of a name: up to a hyphen, dot, slash, colon or comma,
// or all of it.
func nameEnd(name string, all int) int {
	if at := strings.IndexAny(name, "-./:,"); at >= 0 {
		return at + 1
	}
	return all
}

// wrapCell wraps a cell to a width: at blanks, else after a part of a name, else anywhere.
func wrapCell(cell string, width int) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(cell) {
		switch {
		case line != "" && text.StringWidth(line)+1+text.StringWidth(word) <= width:
			line += " " + word
			continue
		case line != "":
			lines = append(lines, line)
		}
		for text.StringWidth(word) > width {
			end := 0
			for rest := word; rest != "" && text.StringWidth(word[:end+nameEnd(rest, len(rest))]) <= width; rest = word[end:] {
				end += nameEnd(rest, len(rest))
			}
			if end == 0 {
				end = len(text.Trim(word, width))
			}
			lines, word = append(lines, word[:end]), word[end:]
		}
		line = word
	}
	return strings.Join(append(lines, line), "\n")
}

// joinLines replaces each run of white space in the cells by one blank.
func joinLines(texts []string) []string {
	out := make([]string, len(texts))
	for i, one := range texts {
		out[i] = strings.Join(strings.Fields(one), " ")
	}
	return out
}

func tableRow(texts []string) table.Row {
	row := make(table.Row, len(texts))
	for i, one := range texts {
		row[i] = one
	}
	return row
}
