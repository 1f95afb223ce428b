package report

import (
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// gap and narrowGap are the numbers of blanks between two columns, if the table fits the terminal
// and if its columns are shortened.
const gap, narrowGap = 3, 2

// proseMin and nameMin are the smallest widths to which columns with sentences and with names are
// shortened.
const proseMin, nameMin = 24, 8

// PrintColumns prints a table like kubectl. numbers are the columns to align right, counted from
// 1. Line breaks in a cell become blanks, so that no text of a message can add a row. On a terminal,
// which is a w with the method Columns() int, the cells of long columns are wrapped so that the
// table fits its width; elsewhere every row is one line.
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
	limits := fitColumns(width, cells, numbers)
	if limits != nil {
		style.Box.PaddingRight = strings.Repeat(" ", narrowGap)
	}
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
			configs[i].WidthMax, configs[i].WidthMaxEnforcer = limits[i], text.WrapSoft
		}
	}
	t.SetColumnConfigs(configs)
	return renderTable(t)
}

// fitColumns returns the widths of the columns with which a table fits a terminal, or nil if it
// needs no limits. It takes columns from the widest ones: first of headers and sentences, then of
// names. Numbers are never shortened, so that a table may exceed a very narrow terminal.
func fitColumns(width int, cells [][]string, numbers []int) []int {
	count := len(cells[0])
	widths, prose, names, total := make([]int, count), make([]int, count), make([]int, count), 0
	for column := range count {
		body, longest, isProse := 0, longestWord(cells[0][column]), false
		for i, row := range cells {
			cell := text.StringWidth(row[column])
			widths[column] = max(widths[column], cell)
			if i > 0 {
				body, isProse = max(body, cell), isProse || strings.Contains(row[column], " ")
			}
		}
		prose[column] = max(body, longest)
		if isProse {
			prose[column] = max(min(body, proseMin), longest)
		}
		names[column] = prose[column]
		if !slices.Contains(numbers, column+1) {
			names[column] = max(min(body, nameMin), longest)
		}
		total += widths[column]
	}
	if width == 0 || total+gap*(count-1) <= width {
		return nil
	}
	available := width - narrowGap*(count-1)
	for _, least := range [][]int{prose, names} {
		total = shrinkColumns(widths, least, total, available)
	}
	return widths
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

// longestWord returns the width of a text's longest word.
func longestWord(words string) (longest int) {
	for _, word := range strings.FieldsFunc(words, unicode.IsSpace) {
		longest = max(longest, text.StringWidth(word))
	}
	return longest
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
