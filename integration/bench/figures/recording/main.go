// Command recording writes deploy/docs/figures/demo.svg: the output of `make demo` as an animated terminal.
//
//	cd integration && go generate ./bench/figures/recording
//
// It runs the demo, whose output is the same for the same seed, so the test and `make verify` find a recording of an older
// version. The drawing is the whole text in one column, which CSS moves up line by line behind a window; with
// prefers-reduced-motion it stands still and shows the end. No maintained tool writes such a file: they write videos,
// or a copy of the screen for each line.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
)

//go:generate go run .

// root is the repository, from this folder, in which go generate and go test run.
const root = "../../../.."

var drawingPath = filepath.Join(root, "deploy", "docs", "figures", "demo.svg")

func main() {
	if err := writeDrawing(); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func writeDrawing() error {
	lines, err := runDemo()
	if err != nil {
		return err
	}
	if err := os.WriteFile(drawingPath, draw(lines), 0o644); err != nil {
		return fmt.Errorf("writing the recording: %w", err)
	}
	return nil
}

// runDemo returns the lines of the demo's output.
func runDemo() ([]string, error) {
	var out, trouble bytes.Buffer
	code := cli.Run(context.Background(), cli.Env{Args: []string{"demo"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &trouble, Now: time.Now})
	if code != cli.ExitNothing {
		return nil, fmt.Errorf("the demo ended with exit code %d: %s", code, trouble.String())
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n"), nil
}
