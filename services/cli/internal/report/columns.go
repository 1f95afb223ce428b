package report

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// FormatColumns formats a table like kubectl. numbers are the columns to align right, counted
// from 1. Line breaks in a cell become blanks, so that no text of a message can add a row.
func FormatColumns(header []string, rows [][]string, numbers ...int) string {
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.AppendHeader(tableCells(header))
	for _, row := range rows {
		t.AppendRow(tableCells(row))
	}
	var configs []table.ColumnConfig
	for _, n := range numbers {
		configs = append(configs, alignRight(n))
	}
	t.SetColumnConfigs(configs)
	return renderTable(t)
}

func tableCells(texts []string) table.Row {
	row := make(table.Row, len(texts))
	for i, text := range texts {
		row[i] = strings.Join(strings.Fields(text), " ")
	}
	return row
}
