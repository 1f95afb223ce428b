package storm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// Sample is the cluster's state at one time.
type Sample struct {
	// At is the time since the beginning, as in all of Report.
	At time.Duration `json:"at"`
	// Pending pods have no node; Running pods are ready on one.
	Pending int `json:"pending"`
	Running int `json:"running"`
	Nodes   int `json:"nodes"`
	// Going is the number of nodes with the disruption taint.
	Going int `json:"going"`
	// Instances are pending or running.
	Instances int `json:"instances"`
}

// Notice is the course of one interruption. A zero time did not happen.
type Notice struct {
	Instance string `json:"instance"`
	// Warned is when EC2 emitted the warning, before any bus or queue.
	Warned time.Duration `json:"warned"`
	// Cordoned is when the node was first observed with the taint.
	Cordoned time.Duration `json:"cordoned"`
	// Evicting is when its first pod was observed terminating.
	Evicting time.Duration `json:"evicting"`
	// Drained is when only daemon pods were left.
	Drained time.Duration `json:"drained"`
	// Gone is when the instance terminated.
	Gone time.Duration `json:"gone"`
	// Ahead is set if there was a replacement NodeClaim for each notice up to this one
	// before the node's first pod was evicted.
	Ahead bool `json:"ahead"`
}

// Report has all measurements.
type Report struct {
	Pods    int            `json:"pods"`
	Acts    []timeline.Act `json:"acts"`
	Samples []Sample       `json:"samples"`
	Notices []Notice       `json:"notices"`
}

// Cordons returns the times from warning to taint of the tainted nodes, sorted.
func (r Report) Cordons() []time.Duration {
	return r.times(func(n Notice) time.Duration { return n.Cordoned })
}

// Drains returns the times from warning to the last pod's end, sorted.
func (r Report) Drains() []time.Duration {
	return r.times(func(n Notice) time.Duration { return n.Drained })
}

func (r Report) times(end func(Notice) time.Duration) []time.Duration {
	var all []time.Duration
	for _, n := range r.Notices {
		if end(n) > 0 {
			all = append(all, end(n)-n.Warned)
		}
	}
	slices.Sort(all)
	return all
}

// Percentile returns the smallest of the sorted times that at least p percent do not
// exceed; zero if none exist.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Summary returns a short text for people.
func (r Report) Summary() string {
	var out strings.Builder
	for _, act := range r.Acts {
		fmt.Fprintf(&out, "%-28s %6.1f s\n", act.Name, (act.To - act.From).Seconds())
	}
	var nodes, pending int
	for _, s := range r.Samples {
		nodes, pending = max(nodes, s.Nodes), max(pending, s.Pending)
	}
	fmt.Fprintf(&out, "%d pods, at most %d nodes, at most %d pods without a node\n", r.Pods, nodes, pending)
	if len(r.Notices) == 0 {
		return out.String()
	}
	line := func(what string, sorted []time.Duration) {
		fmt.Fprintf(&out, "%-28s %4d of %d: p50 %5.2f s, p99 %5.2f s, worst %5.2f s\n", what, len(sorted), len(r.Notices),
			Percentile(sorted, 50).Seconds(), Percentile(sorted, 99).Seconds(), Percentile(sorted, 100).Seconds())
	}
	line("from warning to taint", r.Cordons())
	line("from warning to drained", r.Drains())
	ahead := 0
	for _, n := range r.Notices {
		if n.Ahead {
			ahead++
		}
	}
	fmt.Fprintf(&out, "%-28s %4d of %d before the first pod of the node went\n", "replacement claimed", ahead, len(r.Notices))
	return out.String()
}
