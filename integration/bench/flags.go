package main

import (
	"flag"
	"time"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// options are the command's flags.
type options struct {
	set              contest.Set
	seed             uint64
	scenarios, match string
	only             string
	joist, karpenter string
	before           string
	limit            time.Duration
	fleetLimit       time.Duration
	runs             int
	judge            bool
	write, into      string
}

func parse(args []string) options {
	var o options
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	set := flags.String("set", string(contest.Usual), "kinds and sizes to measure, as a,b=100,1000;a=5000; or alone, which is 100,000 pods of six kinds, for -only joist")
	flags.Uint64Var(&o.seed, "seed", 42, "seed of the generated scenarios")
	flags.StringVar(&o.scenarios, "scenarios", "", "directory of scenarios to measure on, instead of generated ones")
	flags.StringVar(&o.match, "match", "", "only scenarios whose name contains this")
	flags.StringVar(&o.only, "only", "", "measure only this planner: joist or karpenter")
	flags.StringVar(&o.joist, "joist", "", "the joist command (default: built for this run)")
	flags.StringVar(&o.karpenter, "karpenter", "", "the karpenterbaseline command (default: built for this run)")
	flags.StringVar(&o.before, "before", "", "compare with Joist of this commit, tag or branch instead of Karpenter")
	flags.DurationVar(&o.limit, "limit", time.Minute, "time that Karpenter may solve for, as in production")
	flags.DurationVar(&o.fleetLimit, "fleet-limit", 2*time.Minute, "time that Karpenter may consolidate one scenario of nodes for")
	flags.IntVar(&o.runs, "runs", 1, "runs of each planner on each scenario, in turns; the one with the median CPU counts")
	flags.BoolVar(&o.judge, "judge", true, "check every plan, and bound the cost from below")
	flags.StringVar(&o.write, "write", "", "write the scenarios into this directory, and do not measure")
	flags.StringVar(&o.into, "into", "", "write the measurements and their drawing into this directory")
	flags.Parse(args) //nolint:errcheck // it exits by itself
	o.set = contest.Set(*set)
	return o
}
