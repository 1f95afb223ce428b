// Command bench measures planners on the benchmark's scenarios, side by side.
//
//	go run ./integration/bench -only joist -scenarios DIR
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/report"
)

// options are the command's flags.
type options struct {
	only, scenarios, match string
	joist, karpenter       string
	runs                   int
}

func parse(args []string) options {
	var o options
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.StringVar(&o.only, "only", "", "measure this planner alone: joist or karpenter")
	flags.StringVar(&o.scenarios, "scenarios", "", "directory of scenarios to measure on, instead of generated ones")
	flags.StringVar(&o.match, "match", "", "only scenarios whose name contains this")
	flags.IntVar(&o.runs, "runs", 1, "runs of each planner on each scenario; the one with the median CPU counts")
	flags.StringVar(&o.joist, "joist", "", "the joist command (default: built for this run)")
	flags.Parse(args) //nolint:errcheck // it exits by itself
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, parse(os.Args[1:]))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	scratch, err := os.MkdirTemp("", "joist-bench-")
	if err != nil {
		return fmt.Errorf("making a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	samples, err := choose(o, scratch)
	if err != nil {
		return err
	}
	joist, err := contest.Joist(ctx, o.joist, scratch)
	if err != nil {
		return err
	}
	rows, err := contest.Contest{
		Planners: []contest.Planner{joist}, Samples: samples, Runs: o.runs, Progress: progress,
	}.Play(ctx)
	fmt.Println(report.Each(rows))
	return err
}

func choose(o options, scratch string) ([]contest.Sample, error) {
	samples, without, err := contest.Samples(o.scenarios, scratch)
	if err != nil {
		return nil, err
	}
	if len(without) > 0 {
		fmt.Fprintln(os.Stderr, "no pod waits in", strings.Join(without, ", "))
	}
	var chosen []contest.Sample
	for _, s := range samples {
		if strings.Contains(s.Name, o.match) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

func progress(done, all int, what string) { fmt.Fprintf(os.Stderr, "[%d/%d] %s\n", done+1, all, what) }
