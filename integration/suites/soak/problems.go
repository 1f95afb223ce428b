package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/topology"
)

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

// findLost returns how messages were lost, and the errors that no restart explains. That no queue loses a message is the
// test bed's own check.
func (r Measurements) findLost() []string {
	var out []string
	if r.Messages.Expired > 0 {
		out = append(out, fmt.Sprintf("%d messages expired in their queue before a service handled them", r.Messages.Expired))
	}
	if r.Messages.Undelivered > 0 {
		out = append(out, fmt.Sprintf("the bus had no queue for %d events", r.Messages.Undelivered))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		out = append(out, fmt.Sprintf("%d log lines of level ERROR: %s", r.Errors[kind], kind))
	}
	return out
}

// findEnded returns the services that ended by themselves, except in the cluster while the API server was away or started.
func (r Measurements) findEnded() []string {
	var out []string
	for _, e := range r.Ended {
		panicked := strings.Contains(e.Text, "panic:") || strings.Contains(e.Text, "fatal error:")
		inCluster := slices.Contains(topology.ClusterServices, strings.TrimPrefix(e.Service, "joist-"))
		if panicked || !inCluster || !isOutage(r.Outages, e.At) {
			out = append(out, fmt.Sprintf("%s ended by itself at %s: %s", e.Service, e.At.Round(time.Second), e.Text))
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
	scaleAction     = "scale a Deployment"
	driftAction     = "change the NodePool"
	warnAction      = "warn a spot instance"
	terminateAction = "terminate an instance"
	shortageAction  = "exhaust a zone"
	failAction      = "let AWS fail"
	cutAction       = "cut connections to AWS"
	restartAction   = "restart the API server"
	killAction      = "kill a service"
	killAllAction   = "kill every service"
	failedSuffix    = ", failed"
)

var actionNames = []string{
	scaleAction, driftAction, warnAction, terminateAction, shortageAction, failAction, cutAction, restartAction, killAction, killAllAction,
}
