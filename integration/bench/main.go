// Command bench measures planners on the benchmark's scenarios: plans for pending pods,
// and consolidations of existing nodes (kinds e and f).
//
//	go run ./integration/bench                                  Joist and Karpenter on generated scenarios
//	go run ./integration/bench -set 'e,f=100'                   consolidation
//	go run ./integration/bench -before HEAD~3                   Joist and Joist of an earlier commit
//	go run ./integration/bench -only joist -scenarios DIR       only Joist, on existing scenarios
//	go run ./integration/bench -write DIR -set 'b=1000'         only write scenarios
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, parse(os.Args[1:]))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.write != "" {
		if err := os.MkdirAll(o.write, 0o755); err != nil {
			return fmt.Errorf("creating the directory for scenarios: %w", err)
		}
		return o.set.Generate(o.write, o.seed)
	}
	scratch, err := os.MkdirTemp("", "joist-bench-")
	if err != nil {
		return fmt.Errorf("creating a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	samples, fleets, err := choose(o, scratch)
	if err != nil {
		return err
	}
	planners, err := planners(ctx, o, scratch)
	if err != nil {
		return err
	}
	r := record(o)
	held := contest.Contest{Planners: planners, Samples: samples, Runs: o.runs, Progress: progress}
	apart := held
	apart.Samples = fleets
	var fleetJudge contest.ConsolidationValidator
	if o.judge {
		held.Judge, fleetJudge = &contest.Validator{}, &contest.Validator{}
	}
	if r.Rows, err = held.Play(ctx); err == nil {
		r.Fleets, err = apart.PlayFleets(ctx, fleetJudge)
	}
	show(r)
	if err != nil || o.into == "" {
		return err
	}
	return keep(o.into, r)
}

// show prints the measurements and all problems.
func show(r report.Record) {
	if len(r.Rows) > 0 {
		fmt.Printf("%s\n\n%s", tables(r.Rows), report.Problems(r.Rows, nil))
	}
	if len(r.Fleets) > 0 {
		fmt.Printf("%s\n\n%s", report.Fleets(r.Fleets), report.Problems(nil, r.Fleets))
	}
}

// tables prints two planners in one table with ratios, and other numbers of planners line
// by line.
func tables(rows []contest.Row) string {
	if pairs := report.PairsOf(rows); len(pairs) > 0 {
		return pairs.Cost() + "\n\n" + pairs.Effort()
	}
	return report.Each(rows)
}

// choose finds or generates the scenarios: samples with pending pods, and fleets with
// nodes only.
func choose(o options, scratch string) (samples, fleets []contest.Sample, err error) {
	dir := o.scenarios
	if dir == "" {
		dir = scratch
		if err := o.set.Generate(dir, o.seed); err != nil {
			return nil, nil, err
		}
	}
	samples, fleets, err = contest.Samples(dir, scratch)
	if err != nil {
		return nil, nil, err
	}
	other := func(s contest.Sample) bool { return !strings.Contains(s.Name, o.match) }
	samples, fleets = slices.DeleteFunc(samples, other), slices.DeleteFunc(fleets, other)
	if len(samples)+len(fleets) == 0 {
		return nil, nil, fmt.Errorf("no scenario to measure in %s; omit -match and -scenarios for the generated ones", dir)
	}
	return samples, fleets, nil
}

// planners returns the planners, each built for this run unless its path is given.
func planners(ctx context.Context, o options, scratch string) ([]contest.Planner, error) {
	if o.only != "" && o.only != "joist" && o.only != "karpenter" {
		return nil, fmt.Errorf("unknown planner %q: -only is joist or karpenter", o.only)
	}
	if o.only != "" && o.before != "" {
		return nil, fmt.Errorf("-only %s measures one planner and -before %s two; omit one of them", o.only, o.before)
	}
	var out []contest.Planner
	if o.only != "karpenter" {
		joist, err := contest.Joist(ctx, o.joist, scratch)
		if err != nil {
			return nil, err
		}
		out = append(out, joist)
	}
	if o.before != "" {
		before, err := contest.Before(ctx, o.before, scratch)
		return append(out, before), err
	}
	if o.only != "joist" {
		karpenter, err := contest.Karpenter(ctx, o.karpenter, scratch, o.limit, o.fleetLimit)
		if err != nil {
			return nil, err
		}
		out = append(out, karpenter)
	}
	return out, nil
}

func progress(done, all int, what string) { fmt.Fprintf(os.Stderr, "[%d/%d] %s\n", done+1, all, what) }
