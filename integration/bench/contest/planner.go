package contest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// File stands for the path of the scenario in a Planner's command.
const File = "{scenario}"

// Planner is a program that reads a scenario and prints a plan as JSON.
type Planner struct {
	// Name is the planner's name in the tables.
	Name string
	// Command is the program and its arguments, with File among them.
	Command []string
	// Fleet is the same for consolidating a scenario's nodes.
	Fleet []string
	// Deadline is the process's time limit. A planner's own limit on solving is an
	// argument of its command, and shorter.
	Deadline time.Duration
}

// process has the operating system's measurements of one run.
type process struct {
	stdout []byte
	userS  float64
	sysS   float64
}

// run starts the planner on a scenario and waits for it.
func (p Planner) run(ctx context.Context, scenario string) (process, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Deadline)
	defer cancel()
	args := slices.Clone(p.Command)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], File, scenario)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("it was stopped after %s: %w", p.Deadline, ctx.Err())
	}
	out := process{stdout: stdout.Bytes()}
	if state := cmd.ProcessState; state != nil {
		out.userS, out.sysS = state.UserTime().Seconds(), state.SystemTime().Seconds()
	}
	if err != nil {
		return out, fmt.Errorf("running %s: %w%s", strings.Join(args, " "), err, lastWords(stderr.String()))
	}
	return out, nil
}

// lastWords returns the end of a process's stderr, where errors are.
func lastWords(stderr string) string {
	const charsMax = 400
	text := strings.TrimSpace(stderr)
	if text == "" {
		return ""
	}
	if len(text) > charsMax {
		text = "…" + text[len(text)-charsMax:]
	}
	return ": " + text
}
