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
	// Faults counts the failures of AWS by service and kind.
	Faults map[string]int `json:"faults"`
	// Calm is when kills of services ended: memory is judged after it.
	Calm time.Duration `json:"calm"`
	// Outages are from the kill of the API server to its answer.
	Outages []Latency `json:"outages"`
	// Restarts counts the killed processes of each service, and Ended the processes that ended by themselves.
	Restarts map[string]int `json:"restarts"`
	Ended    []Exit         `json:"ended"`
	// Messages counts the messages of all queues, and Replayed the messages that were in DLQs, which DeadLetters lists by queue
	// and reason.
	Messages    Messages       `json:"messages"`
	Replayed    int            `json:"replayed"`
	DeadLetters map[string]int `json:"deadLetters"`
	// Explained counts log lines of level ERROR that a restart of the API server explains, and Errors the others by kind.
	Explained int            `json:"explained"`
	Errors    map[string]int `json:"errors"`
	// Launched counts instances, and Pods counts the pods that were created.
	Launched int `json:"launched"`
	Pods     int `json:"pods"`
	// Orphans are, by kind, how long objects were without the one that they belong to.
	Orphans map[string][]Latency `json:"orphans"`
}

// Exit is the end of a service that the test did not cause.
type Exit struct {
	At      time.Duration `json:"at"`
	Service string        `json:"service"`
	// Text is the state of the process and the end of its log.
	Text string `json:"text"`
}

// Messages counts messages of queues since the beginning. Expired ones were never deleted by a consumer; Undelivered
// are messages for which a rule of the bus had no queue.
type Messages struct {
	Sent        int `json:"sent"`
	Deleted     int `json:"deleted"`
	Dead        int `json:"dead"`
	Expired     int `json:"expired"`
	Undelivered int `json:"undelivered"`
}

// The kinds of orphans.
const (
	instanceOrphan = "instance without NodeClaim"
	claimOrphan    = "NodeClaim without instance"
	nodeOrphan     = "Node without instance"
)

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
	writeSpans(&out, "pod pending to bound", r.Binds)
	writeSpans(&out, "warning to drained", r.Drains)
	writeSpans(&out, "restart of the API server", r.Outages)
	for _, kind := range slices.Sorted(maps.Keys(r.Orphans)) {
		writeSpans(&out, kind, r.Orphans[kind])
	}
	fmt.Fprintf(&out, "%d pods, %d instances; messages: %+v, %d replayed from dead-letter queues %v; %d log lines of level ERROR around restarts of the API server, others: %v\n",
		r.Pods, r.Launched, r.Messages, r.Replayed, r.DeadLetters, r.Explained, r.Errors)
	fmt.Fprintf(&out, "failures of AWS: %v\n", r.Faults)
	fmt.Fprintf(&out, "killed until %s: %v; %d ended by themselves\n", r.Calm.Round(time.Second), r.Restarts, len(r.Ended))
	for _, service := range slices.Sorted(maps.Keys(r.Readings)) {
		fmt.Fprintf(&out, "%-20s", service)
		for _, v := range values {
			g := r.growth(service, v)
			fmt.Fprintf(&out, " %s %6.2f %+6.2f ± %5.2f %s/h (%d);", v.name, g.Mean/v.scale, g.PerHour/v.scale, g.Error/v.scale, v.unit, g.Readings)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func writeSpans(out *strings.Builder, what string, spans []Latency) {
	sorted := sortSpans(spans)
	fmt.Fprintf(out, "%-28s %5d: p50 %6.2f s, p90 %6.2f s, p99 %6.2f s, worst %6.2f s\n", what, len(sorted), storm.Percentile(sorted, 50).Seconds(),
		storm.Percentile(sorted, 90).Seconds(), storm.Percentile(sorted, 99).Seconds(), storm.Percentile(sorted, 100).Seconds())
}

const mebi = 1 << 20

// value is what must not grow in a service.
type value struct {
	name, unit string
	scale      float64
	of         func(ServiceReading) float64
	// collected is whether the value changes with a garbage collection only.
	collected bool
}

var values = []value{
	{"heap", "MiB", mebi, func(r ServiceReading) float64 { return r.Heap }, true},
	{"goroutines", "goroutines", 1, func(r ServiceReading) float64 { return r.Goroutines }, false},
	{"open files", "files", 1, func(r ServiceReading) float64 { return r.Files }, false},
}

// growth returns how much a value of a service grows after the last kill.
func (r Measurements) growth(service string, v value) Growth {
	readings := r.Readings[service]
	if v.collected {
		readings = keepCollections(readings)
	}
	return FindGrowth(readings, r.Calm, v.of)
}
