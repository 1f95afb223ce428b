package consolidation

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// Sample is the cluster's state at one time.
type Sample struct {
	// At is the time since the beginning, as in all of Report.
	At time.Duration `json:"at"`
	// PerHour is the price of the pending and running instances, in US dollars.
	PerHour float64 `json:"perHour"`
	Nodes   int     `json:"nodes"`
	// Going is the number of nodes with the disruption taint, and Allowed the maximum by
	// the NodePool's budget.
	Going   int `json:"going"`
	Allowed int `json:"allowed"`
	// Pending pods have no node; Running pods are ready on one.
	Pending int `json:"pending"`
	Running int `json:"running"`
	// Evicted counts the pods that have left disrupted nodes.
	Evicted int `json:"evicted"`
}

// Report has all measurements.
type Report struct {
	// Pods is the number of pods after the scale-down.
	Pods    int            `json:"pods"`
	Acts    []timeline.Act `json:"acts"`
	Samples []Sample       `json:"samples"`
	// Before and After are the fleet's price per hour after the scale-down and at rest,
	// and Fresh is the price of a new plan for the same pods, in US dollars.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Fresh  float64 `json:"fresh"`
	// NodesBefore and NodesAfter are the numbers of nodes at the same times.
	NodesBefore int `json:"nodesBefore"`
	NodesAfter  int `json:"nodesAfter"`
}

// last returns the last sample, or a zero one if none exists.
func (r Report) last() Sample {
	if len(r.Samples) == 0 {
		return Sample{}
	}
	return r.Samples[len(r.Samples)-1]
}

// Summary returns a short text for people.
func (r Report) Summary() string {
	var out strings.Builder
	for _, act := range r.Acts {
		fmt.Fprintf(&out, "%-28s %6.1f s\n", act.Name, (act.To - act.From).Seconds())
	}
	most := 0
	for _, s := range r.Samples {
		most = max(most, s.Going)
	}
	fmt.Fprintf(&out, "%d pods on %d nodes for $%.2f/h became %d nodes for $%.2f/h; a fresh plan would cost $%.2f/h\n",
		r.Pods, r.NodesBefore, r.Before, r.NodesAfter, r.After, r.Fresh)
	fmt.Fprintf(&out, "%d pods were moved, %.2f of the running pods; at most %d nodes went at a time\n",
		r.last().Evicted, float64(r.last().Evicted)/float64(max(1, r.Pods)), most)
	return out.String()
}

// SVG draws a report: the fleet's price, its nodes with the budget, and the moved pods.
func SVG(r Report) ([]byte, error) {
	if len(r.Samples) == 0 {
		return nil, errors.New("drawing a consolidation: there are no samples")
	}
	cost, nodes, pods := timeline.Panel("US dollars an hour"), timeline.Panel("nodes being disrupted"), timeline.Panel("pods moved")
	points := func(of func(Sample) float64) []timeline.Point {
		return timeline.Points(r.Samples, func(s Sample) time.Duration { return s.At }, of)
	}
	end := r.last().At
	err := errors.Join(
		timeline.Line(cost, "the fleet", 0, points(func(s Sample) float64 { return s.PerHour })),
		timeline.Level(cost, "a fresh plan for the same pods", 1, r.Fresh, end),
		timeline.Line(nodes, "going", 0, points(func(s Sample) float64 { return float64(s.Going) })),
		timeline.Line(nodes, "allowed", 1, points(func(s Sample) float64 { return float64(s.Allowed) })),
		timeline.Line(pods, "", 0, points(func(s Sample) float64 { return float64(s.Evicted) })),
	)
	if err != nil {
		return nil, err
	}
	return timeline.SVG(end, r.Acts, cost, nodes, pods)
}
