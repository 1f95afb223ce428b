package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/joist-autoscaler/joist/services/cli"
)

// TestTerminal runs a command on a pseudo-terminal: its table fits the width, and its error is red.
// In a pipe it has no colours.
func TestTerminal(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip("this machine has no pseudo-terminals:", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 64}); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // It ends with an error when the terminal is closed.
		read <- string(text)
	}()
	run := func(out io.Writer, args ...string) {
		cli.Run(t.Context(), cli.Env{
			Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Terminal: measureTerminal, Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		})
	}
	run(terminal, "budgets", "-f", "../../testdata/budgets.yaml", "--days", "1")
	run(terminal, "plna")
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	text := <-read
	_, table, _ := strings.Cut(text, "BUDGET")
	table, _, _ = strings.Cut(table, "Drifted:")
	for line := range strings.SplitSeq(table, "\r\n") {
		if len(line) > 64 {
			t.Errorf("a line has %d columns: %q", len(line), line)
		}
	}
	if want := "\x1b[31mjoist:\x1b[0m unknown command \"plna\"\r\nTry: joist plan;"; !strings.Contains(text, want) {
		t.Errorf("the error is not %q: %q", want, text)
	}
	var pipe bytes.Buffer
	run(&pipe, "plna")
	if columns, isTerminal := measureTerminal(os.NewFile(^uintptr(0), "none")); columns != 0 || isTerminal || strings.Contains(pipe.String(), "\x1b") {
		t.Errorf("a pipe is a terminal: %q", pipe.String())
	}
}
