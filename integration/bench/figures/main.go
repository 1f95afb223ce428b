// Command figures writes the measurements of `make figures` into the README and the benchmark's page.
//
//	go run ./integration/bench/figures
//
// It measures nothing: it shows deploy/docs/figures/bench.json and large/bench.json, which hold the
// date, the machine and every run, so that the pages cannot say what the data
// does not. The invariant, which a test holds: sections and drawing are those of
// the committed data.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/joist-autoscaler/joist/integration/bench/chart"
	"github.com/joist-autoscaler/joist/integration/bench/report"
)

// The files of the repository with the figures. The README has a few rows of them, the page all.
const (
	readme  = "README.md"
	page    = "deploy/docs/benchmark.md"
	data    = "deploy/docs/figures/bench.json"
	drawing = "deploy/docs/figures/bench.svg"
	// large has the measurements of Joist alone.
	large = "deploy/docs/figures/large/bench.json"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// run renews the pages and the drawing of a repository.
func run(root string) error {
	now, err := render(root)
	if err != nil {
		return err
	}
	for path, text := range now {
		if err := os.WriteFile(filepath.Join(root, path), text, 0o644); err != nil {
			return fmt.Errorf("writing the figures: %w", err)
		}
		fmt.Println("wrote", path)
	}
	return nil
}

// render gives the files that show the data, by path, as they should be.
func render(root string) (map[string][]byte, error) {
	record, err := readRecord(filepath.Join(root, data))
	if err != nil {
		return nil, err
	}
	alone, err := readRecord(filepath.Join(root, large))
	if err != nil {
		return nil, err
	}
	picture, err := chart.SVG(record.Rows)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{drawing: picture}
	for path, section := range map[string]string{
		readme: record.Brief(page),
		page:   record.Markdown("figures/"+filepath.Base(drawing), "figures/"+filepath.Base(data)) + alone.Alone("figures/large/"+filepath.Base(large)),
	} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, fmt.Errorf("reading the page for the figures: %w", err)
		}
		if files[path], err = replace(text, section); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

func readRecord(path string) (report.Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return report.Record{}, fmt.Errorf("reading the measurements (make figures takes them): %w", err)
	}
	return report.Decode(text)
}
