package differential

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

var examples = flag.Bool("examples", false, "print scenarios for which Karpenter's plan is not valid")

// tally has the statistics that are logged and not asserted.
type tally struct {
	scenarios, pods    int
	ourPods, theirPods int
	// comparable is the number of scenarios in which both placed the same number of pods
	// on new nodes; the prices are of those, in US dollars per hour.
	comparable                   int
	ourPrice, theirPrice, bounds float64
	dearer                       int
	worst                        float64
	ourNodes, theirNodes         int
	refused                      int
	// examples has one example per rule, the one with the fewest violations.
	examples map[planvalidator.Rule]example
}

type example struct {
	violations []planvalidator.Violation
	scenario   []byte
}

func (c *tally) add(us, them judged, bound float64, scenario []byte) {
	c.scenarios++
	c.pods += us.Pods
	c.ourPods, c.theirPods = c.ourPods+us.placed(), c.theirPods+them.placed()
	if len(them.violations) > 0 {
		c.refused++
		if c.examples == nil {
			c.examples = map[planvalidator.Rule]example{}
		}
		for _, v := range them.violations {
			if was, seen := c.examples[v.Rule]; !seen || len(them.violations) < len(was.violations) {
				c.examples[v.Rule] = example{them.violations, scenario}
			}
		}
		return
	}
	if us.placed() != them.placed() || len(us.ExistingPods)+len(them.ExistingPods) > 0 || len(us.NewNodes) == 0 || len(us.Unscheduled) > 0 {
		return
	}
	c.comparable++
	c.ourPrice, c.theirPrice, c.bounds = c.ourPrice+us.Summary.DollarsPerHour, c.theirPrice+them.Summary.DollarsPerHour, c.bounds+bound
	c.ourNodes, c.theirNodes = c.ourNodes+len(us.NewNodes), c.theirNodes+len(them.NewNodes)
	if ratio := us.Summary.DollarsPerHour / them.Summary.DollarsPerHour; ratio > 1+1e-9 {
		c.dearer++
		c.worst = max(c.worst, ratio)
	}
}

func (c *tally) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d scenarios, %d pods: Joist places %d, Karpenter %d", c.scenarios, c.pods, c.ourPods, c.theirPods)
	if c.comparable > 0 {
		fmt.Fprintf(&out, "\n%d with all pods on new nodes: ours cost %.3f times Karpenter's (%d nodes to %d) and %.3f times the bound; dearer in %d, at worst %.3f times",
			c.comparable, c.ourPrice/c.theirPrice, c.ourNodes, c.theirNodes, c.ourPrice/c.bounds, c.dearer, max(c.worst, 1))
	}
	if c.refused > 0 {
		fmt.Fprintf(&out, "\n%d plans of Karpenter's are not valid:", c.refused)
		for _, rule := range slices.Sorted(maps.Keys(c.examples)) {
			fmt.Fprintf(&out, "\n  %v", c.examples[rule].violations[0])
			if *examples {
				fmt.Fprintf(&out, "\n  in %s", c.examples[rule].scenario)
			}
		}
	}
	return out.String()
}
