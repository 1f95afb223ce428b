// Command planvalidator prints the violations of a plan or a consolidation, its price and the
// lower bound of the price. The exit code is 1 if the input is not valid.
//
//	go run ./integration/bench/planvalidator/cmd/planvalidator SCENARIO PLAN
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/joist-autoscaler/joist/integration/bench/planvalidator"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("name a scenario file and a plan's")
	}
	s, err := planvalidator.ReadScenario(args[0])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	if bytes.Contains(text, []byte(`"finalNodes"`)) {
		return consolidation(s, text)
	}
	plan, err := planvalidator.ParseResult(text)
	if err != nil {
		return err
	}
	bound, err := planvalidator.LowerBound(s)
	if err != nil {
		return err
	}
	violations := planvalidator.CheckPlan(s, plan)
	for _, v := range violations {
		fmt.Println(v.Error())
	}
	cost := plan.Summary.DollarsPerHour
	fmt.Printf("%s on %s: %d nodes, $%.4f an hour, %d pods placed and %d not; the bound is $%.4f", plan.Planner, s.Name, len(plan.NewNodes), cost, plan.Summary.Scheduled, plan.Summary.Unscheduled, bound)
	if bound > 0 {
		fmt.Printf(", %.3f times it", cost/bound)
	}
	fmt.Println()
	if len(violations) > 0 {
		return fmt.Errorf("%d violations", len(violations))
	}
	return nil
}

func consolidation(s *planvalidator.Scenario, text []byte) error {
	c, err := planvalidator.ParseConsolidation(text)
	if err != nil {
		return err
	}
	bound, err := planvalidator.RepackBound(s)
	if err != nil {
		return err
	}
	violations := planvalidator.CheckConsolidation(s, c)
	for _, v := range violations {
		fmt.Println(v.Error())
	}
	fmt.Printf("%s on %s: %d nodes at $%.4f an hour became %d at $%.4f by %d commands and %d moves; the bound of a repack is $%.4f", c.Planner, s.Name,
		c.Nodes, c.CostBefore, c.NodesAfter, c.CostAfter, len(c.Rounds), c.PodsMoved, bound)
	if bound > 0 {
		fmt.Printf(", %.3f times it", c.CostAfter/bound)
	}
	fmt.Println()
	if len(violations) > 0 {
		return fmt.Errorf("%d violations", len(violations))
	}
	return nil
}
