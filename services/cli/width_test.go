package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
)

// TestTablesFitTheTerminal compares tables at several widths, in a pipe and with -o wide with
// golden files. NO_COLOR does not change the text.
func TestTablesFitTheTerminal(t *testing.T) {
	commands := []struct{ name, args string }{
		{"plan", "plan -f testdata/nodepool.yaml -f testdata/nodeclass.yaml -f testdata/inflate.yaml --region ap-northeast-2"},
		{"budgets", "budgets -f testdata/budgets.yaml --days 1"},
		{"simulate", "simulate --scenario " + tiny + " --remove node/node-1"},
	}
	for _, command := range commands {
		var all strings.Builder
		for _, at := range []struct {
			name     string
			terminal func(io.Writer) (int, bool)
			more     string
		}{
			{"a terminal of 60 columns", func(io.Writer) (int, bool) { return 60, true }, ""},
			{"a terminal of 80 columns", func(io.Writer) (int, bool) { return 80, true }, ""},
			{"a terminal of 120 columns", func(io.Writer) (int, bool) { return 120, true }, ""},
			{"a pipe", nil, ""},
			{"a terminal of 60 columns, -o wide", func(io.Writer) (int, bool) { return 60, true }, "-o wide"},
		} {
			args := append(strings.Fields(command.args), strings.Fields(at.more)...)
			if at.more != "" && command.name == "budgets" {
				continue // It has no wide table.
			}
			var out, errs bytes.Buffer
			cli.Run(t.Context(), cli.Env{
				Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Terminal: at.terminal, Environ: []string{"NO_COLOR=1"},
				Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
			})
			table, _, _ := strings.Cut(out.String(), "\nAssumed:")
			fmt.Fprintf(&all, "# %s\n%s\n", at.name, table)
		}
		t.Run(command.name, func(t *testing.T) { compareGolden(t, "width-"+command.name, all.String()) })
	}
}

// TestColumnsOfTheEnvironment: COLUMNS sets the width of a terminal, and does not change a pipe.
func TestColumnsOfTheEnvironment(t *testing.T) {
	widest := func(terminal func(io.Writer) (int, bool)) (widest int) {
		var out bytes.Buffer
		cli.Run(t.Context(), cli.Env{
			Args: []string{"budgets", "-f", "testdata/budgets.yaml", "--days", "1"}, Stdout: &out, Stderr: io.Discard, Environ: []string{"COLUMNS=70"}, Terminal: terminal,
			Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		})
		_, table, _ := strings.Cut(out.String(), "BUDGET")
		for line := range strings.SplitSeq(table, "\n") {
			if !strings.Contains(line, ": ") { // a sentence
				widest = max(widest, len(line))
			}
		}
		return widest
	}
	if got := widest(func(io.Writer) (int, bool) { return 200, true }); got > 70 {
		t.Errorf("a terminal has lines of %d columns", got)
	}
	if got := widest(nil); got <= 70 {
		t.Errorf("in a pipe the widest line has only %d columns", got)
	}
}
