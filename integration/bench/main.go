// Command bench measures planners on the benchmark's scenarios, side by side.
//
//	go run ./integration/bench                                  Joist beside Karpenter on generated scenarios
//	go run ./integration/bench -only joist -scenarios DIR       Joist alone on scenarios that there are
//	go run ./integration/bench -write DIR -set 'b=1000'         no measuring: the scenarios alone
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
			return fmt.Errorf("making the directory for scenarios: %w", err)
		}
		return o.set.Generate(o.write, o.seed)
	}
	scratch, err := os.MkdirTemp("", "joist-bench-")
	if err != nil {
		return fmt.Errorf("making a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	samples, err := choose(o, scratch)
	if err != nil {
		return err
	}
	planners, err := planners(ctx, o, scratch)
	if err != nil {
		return err
	}
	r := record(o)
	held := contest.Contest{Planners: planners, Samples: samples, Runs: o.runs, Progress: progress}
	if o.judge {
		held.Judge = &contest.Referee{}
	}
	r.Rows, err = held.Play(ctx)
	fmt.Printf("%s\n\n%s", tables(r.Rows), report.Problems(r.Rows))
	if err != nil || o.into == "" {
		return err
	}
	return keep(o.into, r)
}

// tables shows a contest of two side by side, and others line by line.
func tables(rows []contest.Row) string {
	if pairs := report.PairsOf(rows); len(pairs) > 0 {
		return pairs.Cost() + "\n\n" + pairs.Effort()
	}
	return report.Each(rows)
}

// choose finds the scenarios, or makes them.
func choose(o options, scratch string) ([]contest.Sample, error) {
	dir := o.scenarios
	if dir == "" {
		dir = scratch
		if err := o.set.Generate(dir, o.seed); err != nil {
			return nil, err
		}
	}
	samples, without, err := contest.Samples(dir, scratch)
	if err != nil {
		return nil, err
	}
	if len(without) > 0 {
		fmt.Fprintln(os.Stderr, "no pod waits in", strings.Join(without, ", "))
	}
	samples = slices.DeleteFunc(samples, func(s contest.Sample) bool { return !strings.Contains(s.Name, o.match) })
	if len(samples) == 0 {
		return nil, fmt.Errorf("there is no scenario to measure in %s; leave -match and -scenarios out for the generated ones", dir)
	}
	return samples, nil
}

// planners are those that take part, each built for this run unless it is named.
func planners(ctx context.Context, o options, scratch string) ([]contest.Planner, error) {
	if o.only != "" && o.only != "joist" && o.only != "karpenter" {
		return nil, fmt.Errorf("there is no planner %q: -only takes joist or karpenter", o.only)
	}
	var out []contest.Planner
	if o.only != "karpenter" {
		joist, err := contest.Joist(ctx, o.joist, scratch)
		if err != nil {
			return nil, err
		}
		out = append(out, joist)
	}
	if o.only != "joist" {
		karpenter, err := contest.Karpenter(ctx, o.karpenter, scratch, o.limit)
		if err != nil {
			return nil, err
		}
		out = append(out, karpenter)
	}
	return out, nil
}

func progress(done, all int, what string) { fmt.Fprintf(os.Stderr, "[%d/%d] %s\n", done+1, all, what) }
