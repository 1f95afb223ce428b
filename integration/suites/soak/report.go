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
	// Calm is when kills of services ended: memory is judged after it.
	Calm time.Duration `json:"calm"`
	// Restarts counts the processes of each service that were killed, and Ended are those that ended by themselves.
	Restarts map[string]int `json:"restarts"`
	Ended    []Exit         `json:"ended"`
	// Messages counts those of all queues, and Replayed those that were in dead-letter queues, which DeadLetters lists by queue
	// and reason. Errors counts log lines of level ERROR.
	Messages    Messages       `json:"messages"`
	Replayed    int            `json:"replayed"`
	DeadLetters map[string]int `json:"deadLetters"`
	Errors      int            `json:"errors"`
	// Launched counts instances, and Pods those that were created.
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
// are those that a rule of the bus had no queue for.
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
	for _, kind := range slices.Sorted(maps.Keys(r.Orphans)) {
		writeSpans(&out, kind, r.Orphans[kind])
	}
	fmt.Fprintf(&out, "%d pods, %d instances; messages: %+v, %d replayed from dead-letter queues %v; %d log lines of level ERROR\n",
		r.Pods, r.Launched, r.Messages, r.Replayed, r.DeadLetters, r.Errors)
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

// The limits of a run.
const (
	orphanMax  = 90 * time.Second
	pendingMax = 3 * time.Minute
	// noticeMax is from EC2's warning to the end of a spot instance.
	noticeMax = 2 * time.Minute
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
	for _, s := range r.Drains {
		if s.Took > noticeMax {
			out = append(out, fmt.Sprintf("%s was drained %s after EC2's warning at %s, and EC2 ended it after %s", s.Of, s.Took.Round(time.Second), s.At.Round(time.Second), noticeMax))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Orphans)) {
		for _, s := range r.Orphans[kind] {
			if s.Took > orphanMax {
				out = append(out, fmt.Sprintf("%s: %s for %s from %s, longer than %s", kind, s.Of, s.Took.Round(time.Second), s.At.Round(time.Second), orphanMax))
			}
		}
	}
	return slices.Concat(out, r.findLost(), r.findEnded(), r.findGrowing(), r.findMissing())
}

// findLost returns how messages were lost. That no queue loses one is the test bed's own check.
func (r Measurements) findLost() []string {
	var out []string
	if r.Messages.Expired > 0 {
		out = append(out, fmt.Sprintf("%d messages expired in their queue before a service handled them", r.Messages.Expired))
	}
	if r.Messages.Undelivered > 0 {
		out = append(out, fmt.Sprintf("the bus had no queue for %d events", r.Messages.Undelivered))
	}
	return out
}

// findEnded returns the services that ended by themselves for another reason than that the API server was away while they
// started.
func (r Measurements) findEnded() []string {
	var out []string
	for _, e := range r.Ended {
		switch {
		case strings.Contains(e.Text, "panic:"), strings.Contains(e.Text, "fatal error:"):
			out = append(out, fmt.Sprintf("%s panicked at %s: %s", e.Service, e.At.Round(time.Second), e.Text))
		case e.At > r.Calm+time.Minute:
			out = append(out, fmt.Sprintf("%s ended by itself at %s, when no service was started: %s", e.Service, e.At.Round(time.Second), e.Text))
		}
	}
	return out
}

// findGrowing returns what grows, and the services whose growth a long run does not show.
func (r Measurements) findGrowing() []string {
	var out []string
	for _, service := range slices.Sorted(maps.Keys(r.Readings)) {
		for _, v := range values {
			g := r.growth(service, v)
			if g.IsGrowing(growthMax) {
				out = append(out, fmt.Sprintf("%s of %s: grows by %.2f %s an hour (± %.2f), with a mean of %.2f", v.name, service, g.PerHour/v.scale, v.unit, g.Error/v.scale, g.Mean/v.scale))
			}
			if r.isLong() && g.Span < minSpan {
				out = append(out, fmt.Sprintf("%s of %s: there are readings of %s, less than %s", v.name, service, g.Span.Round(time.Second), minSpan))
			}
		}
	}
	return out
}

// isLong reports whether a run is long enough to decide about growth, and for every action to happen.
func (r Measurements) isLong() bool { return r.Took-r.Calm >= 2*minSpan }

// findMissing returns the actions that a long run must have done and has not.
func (r Measurements) findMissing() []string {
	var out []string
	for name := range r.Actions {
		if done, failed := strings.CutSuffix(name, failedSuffix); failed && r.Actions[done] == 0 {
			out = append(out, done+" failed each time")
		}
	}
	for _, name := range actionNames {
		if r.isLong() && r.Actions[name] == 0 {
			out = append(out, name+": this never happened")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// The random actions.
const (
	scaleAction, warnAction, driftAction = "scale a Deployment", "warn a spot instance", "change the NodePool"
	killAction, killAllAction            = "kill a service", "kill every service"
	restartAction, cutAction             = "restart the API server", "cut connections to AWS"
	failedSuffix                         = ", failed"
)

var actionNames = []string{scaleAction, warnAction, driftAction, killAction, killAllAction, restartAction, cutAction}
