package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/joist-autoscaler/joist/integration/bench/chart"
	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/report"
)

// Names of the files that -into writes.
const (
	dataFile    = "bench.json"
	drawingFile = "bench.svg"
)

// record returns the contest's conditions before it runs.
func record(o options) report.Record {
	return report.Record{
		Date: time.Now().UTC().Truncate(time.Second), Commit: contest.Commit(), Go: runtime.Version(), Machine: contest.ThisMachine(),
		Seed: o.seed, Runs: o.runs, Limit: o.limit.String(), FleetLimit: o.fleetLimit.String(),
	}
}

// keep writes the measurements, and the drawing of two planners' plans.
func keep(dir string, r report.Record) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	files := map[string][]byte{dataFile: data}
	if len(report.PairsOf(r.Rows)) > 0 {
		if files[drawingFile], err = chart.SVG(r.Rows); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating a directory for the figures: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("writing the figures: %w", err)
		}
	}
	fmt.Println("\nfigures:", filepath.Join(dir, dataFile))
	return nil
}
