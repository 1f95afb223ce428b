package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/timeline"
	"github.com/joist-autoscaler/joist/integration/suites/storm"
)

// ClusterSample is the cluster's state at one time.
type ClusterSample struct {
	At time.Duration `json:"at"`
	// Pending pods have no node.
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Nodes     int `json:"nodes"`
	Instances int `json:"instances"`
}

// Latency is a duration that began at a time.
type Latency struct {
	At   time.Duration `json:"at"`
	Took time.Duration `json:"took"`
	// Of is the pod or the instance.
	Of string `json:"of"`
}

// Measurements are those of one run.
type Measurements struct {
	Seed uint64        `json:"seed"`
	Took time.Duration `json:"took"`
	// Actions counts the random actions by name.
	Actions map[string]int  `json:"actions"`
	Acts    []timeline.Act  `json:"acts"`
	Samples []ClusterSample `json:"samples"`
	// Binds are from a pending pod to its binding, and Drains from EC2's warning to the end of the node's last pod.
	Binds  []Latency `json:"binds"`
	Drains []Latency `json:"drains"`
	// Readings are by service.
	Readings map[string][]ServiceReading `json:"readings"`
	// Replayed counts messages that were in dead-letter queues, and Errors log lines of level ERROR.
	Replayed int `json:"replayed"`
	Errors   int `json:"errors"`
	// Ended are services that ended by themselves.
	Ended []string `json:"ended"`
	// Launched counts instances. Orphan is the longest time of an instance without a NodeClaim.
	Launched int           `json:"launched"`
	Orphan   time.Duration `json:"orphan"`
}

// sortSpans returns the durations of spans, sorted.
func sortSpans(spans []Latency) []time.Duration {
	var all []time.Duration
	for _, s := range spans {
		all = append(all, s.Took)
	}
	slices.Sort(all)
	return all
}

// Summary returns a short text for people.
func (r Measurements) Summary() string {
	var out strings.Builder
	fmt.Fprintf(&out, "seed %d, %s, %d instances launched\n", r.Seed, r.Took.Round(time.Second), r.Launched)
	for _, name := range slices.Sorted(maps.Keys(r.Actions)) {
		fmt.Fprintf(&out, "%-28s %5d\n", name, r.Actions[name])
	}
	for _, line := range []struct {
		what  string
		spans []Latency
	}{{"pod pending to bound", r.Binds}, {"warning to drained", r.Drains}} {
		sorted := sortSpans(line.spans)
		fmt.Fprintf(&out, "%-28s %5d: p50 %6.2f s, p90 %6.2f s, p99 %6.2f s, worst %6.2f s\n", line.what, len(sorted), storm.Percentile(sorted, 50).Seconds(),
			storm.Percentile(sorted, 90).Seconds(), storm.Percentile(sorted, 99).Seconds(), storm.Percentile(sorted, 100).Seconds())
	}
	fmt.Fprintf(&out, "longest instance without NodeClaim %.1f s; %d messages replayed from dead-letter queues; %d log lines of level ERROR; %d services ended by themselves\n",
		r.Orphan.Seconds(), r.Replayed, r.Errors, len(r.Ended))
	for _, service := range slices.Sorted(maps.Keys(r.Readings)) {
		heap, goroutines := r.growths(service)
		fmt.Fprintf(&out, "%-20s heap %6.2f MiB %+6.2f ± %5.2f MiB/h; goroutines %6.1f %+6.1f ± %5.1f/h; %d readings\n", service,
			heap.Mean/mebi, heap.PerHour/mebi, heap.Error/mebi, goroutines.Mean, goroutines.PerHour, goroutines.Error, heap.Readings)
	}
	return out.String()
}

const mebi = 1 << 20

// growths returns the growth of a service's heap and goroutines in the second half.
func (r Measurements) growths(service string) (heap, goroutines Growth) {
	readings := r.Readings[service]
	return FindGrowth(readings, r.Took/2, func(r ServiceReading) float64 { return r.Heap }), FindGrowth(readings, r.Took/2, func(r ServiceReading) float64 { return r.Goroutines })
}

// The limits of a run.
const (
	orphanMax  = 90 * time.Second
	pendingMax = 3 * time.Minute
	// growthMax is how much heap and goroutines may grow in an hour, as a part of their mean.
	growthMax = 0.2
)

// FindProblems returns the violated limits.
func (r Measurements) FindProblems() []string {
	var out []string
	for _, s := range r.Binds {
		if s.Took > pendingMax {
			out = append(out, fmt.Sprintf("pod %s was pending for %s from %s, longer than %s", s.Of, s.Took.Round(time.Second), s.At.Round(time.Second), pendingMax))
		}
	}
	if r.Orphan > orphanMax {
		out = append(out, fmt.Sprintf("an instance had no NodeClaim for %s, longer than %s", r.Orphan.Round(time.Second), orphanMax))
	}
	for _, service := range slices.Sorted(maps.Keys(r.Readings)) {
		heap, goroutines := r.growths(service)
		if heap.IsGrowing(growthMax) {
			out = append(out, fmt.Sprintf("the heap of %s grows: %.2f MiB an hour (± %.2f), with a mean of %.2f MiB", service, heap.PerHour/mebi, heap.Error/mebi, heap.Mean/mebi))
		}
		if goroutines.IsGrowing(growthMax) {
			out = append(out, fmt.Sprintf("the goroutines of %s grow: %.1f an hour (± %.1f), with a mean of %.1f", service, goroutines.PerHour, goroutines.Error, goroutines.Mean))
		}
	}
	return out
}
