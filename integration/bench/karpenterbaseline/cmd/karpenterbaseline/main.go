// Command karpenterbaseline plans a scenario with upstream Karpenter's scheduler and
// prints the plan as JSON.
//
//	go run ./integration/bench/karpenterbaseline/cmd/karpenterbaseline [-timeout 1m] FILE
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "karpenterbaseline:", err)
		os.Exit(1)
	}
}

func run() error {
	var o karpenterbaseline.Options
	flag.DurationVar(&o.Timeout, "timeout", 0, "stop solving after this time and keep the placed pods; 0 means no limit, production uses 1m")
	flag.IntVar(&o.Concurrency, "concurrency", 2, "number of the scheduler's workers; in production the CPUs that the controller requests")
	consolidate := flag.Bool("consolidate", false, "consolidate the nodes of the scenario instead of planning its pods")
	flag.Parse()
	if flag.NArg() != 1 {
		return errors.New("give the name of one scenario file")
	}
	s, err := karpenterbaseline.Read(flag.Arg(0))
	if err != nil {
		return err
	}
	result, err := answer(s, o, *consolidate)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		return fmt.Errorf("printing the plan: %w", err)
	}
	return nil
}

func answer(s *karpenterbaseline.Scenario, o karpenterbaseline.Options, consolidate bool) (any, error) {
	if consolidate {
		return karpenterbaseline.Consolidate(context.Background(), s, o)
	}
	return karpenterbaseline.Plan(context.Background(), s, o)
}
