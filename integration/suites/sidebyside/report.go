package sidebyside

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"

	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// DaySample is the state of one side at one time.
type DaySample struct {
	// At is the time of day.
	At time.Duration `json:"at"`
	// PerHour is the price of the instances that AWS would bill, in US dollars.
	PerHour float64 `json:"perHour"`
	// Nodes counts those instances.
	Nodes int `json:"nodes"`
	// Pending pods have no node; Running pods are ready.
	Pending int `json:"pending"`
	Running int `json:"running"`
	// Evicted counts evictions since the beginning of the day.
	Evicted int `json:"evicted"`
}

// NodeLife is one instance of the day.
type NodeLife struct {
	Name         string  `json:"name"`
	Type         string  `json:"type"`
	CapacityType string  `json:"capacityType"`
	PerHour      float64 `json:"perHour"`
	// From is the time of day of the launch, zero if it was before the day. To is that of the end, zero if it outlived the day.
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// DayMeasurements are those of one controller.
type DayMeasurements struct {
	Name    string      `json:"name"`
	Samples []DaySample `json:"samples"`
	// Fill is how long it took until the first pods ran, from an empty cluster, in real time.
	Fill time.Duration `json:"fill"`
	// Starts are the times from the creation of each pod of the day until it was ready, sorted, in real time.
	Starts []time.Duration `json:"starts"`
	// Fleet are the instances of the day, by the time of their launch.
	Fleet []NodeLife `json:"fleet"`
	// Evicted counts pods.
	Evicted int `json:"evicted"`
	// Lost counts pods that were deleted with their nodes instead of being evicted.
	Lost int `json:"lost"`
	// CPUSeconds is the CPU time of the controllers during the day, by process.
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// LoadAverage is the mean load average of the machine during the day.
	LoadAverage float64 `json:"loadAverage"`
}

// Comparison has the measurements of each controller.
type Comparison struct {
	Seed uint64 `json:"seed"`
	// From and To are the times of day of the load, and Pace how many times faster it passed than a real day.
	From  time.Duration     `json:"from"`
	To    time.Duration     `json:"to"`
	Pace  float64           `json:"pace"`
	Sides []DayMeasurements `json:"sides"`
}

// Dollars returns what the instances cost during the day, in US dollars.
func (s DayMeasurements) Dollars() float64 {
	return s.integrate(func(one DaySample) float64 { return one.PerHour })
}

// CountLaunches counts the instances that were launched during the day.
func (s DayMeasurements) CountLaunches() int {
	return s.countNodes(func(n NodeLife) bool { return n.From > 0 })
}

// CountRemovals counts the instances that ended during the day.
func (s DayMeasurements) CountRemovals() int {
	return s.countNodes(func(n NodeLife) bool { return n.To > 0 })
}

// ShortLived counts the instances that were launched and ended within an hour of the day.
func (s DayMeasurements) ShortLived() int {
	return s.countNodes(func(n NodeLife) bool { return n.From > 0 && n.To > 0 && n.To-n.From <= time.Hour })
}

func (s DayMeasurements) countNodes(counts func(NodeLife) bool) int {
	n := 0
	for _, one := range s.Fleet {
		if counts(one) {
			n++
		}
	}
	return n
}

// PendingHours returns the sum over all pods of the time without a node, in hours of the simulated day.
func (s DayMeasurements) PendingHours() float64 {
	return s.integrate(func(one DaySample) float64 { return float64(one.Pending) })
}

// integrate adds a value over the hours of the day. Each sample holds until the next.
func (s DayMeasurements) integrate(value func(DaySample) float64) float64 {
	sum := 0.0
	for i := 1; i < len(s.Samples); i++ {
		sum += value(s.Samples[i-1]) * (s.Samples[i].At - s.Samples[i-1].At).Hours()
	}
	return sum
}

// CPU returns the CPU time of all controllers, in seconds.
func (s DayMeasurements) CPU() float64 {
	sum := 0.0
	for _, seconds := range s.CPUSeconds {
		sum += seconds
	}
	return sum
}

// Start returns the smallest of the start times that at least p percent of the pods do not exceed; zero without pods.
func (s DayMeasurements) Start(p float64) time.Duration {
	if len(s.Starts) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(s.Starts))))
	return s.Starts[min(max(rank, 1), len(s.Starts))-1]
}

// Table returns the comparison as rows of Markdown.
func (r Comparison) Table() string {
	var out strings.Builder
	row := func(name string, cell func(DayMeasurements) string) {
		out.WriteString("| " + name)
		for _, s := range r.Sides {
			out.WriteString(" | " + cell(s))
		}
		out.WriteString(" |\n")
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	row("", func(s DayMeasurements) string { return s.Name })
	out.WriteString(strings.Repeat("|---", len(r.Sides)+1) + "|\n")
	row(fmt.Sprintf("cost of the %g hours", (r.To-r.From).Hours()), func(s DayMeasurements) string { return fmt.Sprintf("$%.2f", s.Dollars()) })
	row("pods that started", func(s DayMeasurements) string { return strconv.Itoa(len(s.Starts)) })
	row("creation to running, median", func(s DayMeasurements) string { return seconds(s.Start(50)) })
	row("p95", func(s DayMeasurements) string { return seconds(s.Start(95)) })
	row("maximum", func(s DayMeasurements) string { return seconds(s.Start(100)) })
	row("pods without a node, mean", func(s DayMeasurements) string {
		return fmt.Sprintf("%.2f", s.PendingHours()/max((r.To-r.From).Hours(), 1e-9))
	})
	row("pods without a node, maximum", func(s DayMeasurements) string {
		return strconv.Itoa(s.most(func(one DaySample) int { return one.Pending }))
	})
	row("evictions", func(s DayMeasurements) string { return strconv.Itoa(s.Evicted) })
	row("pods deleted with their nodes", func(s DayMeasurements) string { return strconv.Itoa(s.Lost) })
	row("nodes launched", func(s DayMeasurements) string { return strconv.Itoa(s.CountLaunches()) })
	row("nodes removed", func(s DayMeasurements) string { return strconv.Itoa(s.CountRemovals()) })
	row("nodes removed within an hour of their launch", func(s DayMeasurements) string { return strconv.Itoa(s.ShortLived()) })
	row("nodes, maximum", func(s DayMeasurements) string {
		return strconv.Itoa(s.most(func(one DaySample) int { return one.Nodes }))
	})
	row("from an empty cluster to the first hour's pods", func(s DayMeasurements) string { return seconds(s.Fill) })
	row("CPU of the controllers", func(s DayMeasurements) string { return fmt.Sprintf("%.0f s", s.CPU()) })
	row("load average of the machine", func(s DayMeasurements) string { return fmt.Sprintf("%.1f", s.LoadAverage) })
	return out.String()
}

func (s DayMeasurements) most(value func(DaySample) int) int {
	most := 0
	for _, one := range s.Samples {
		most = max(most, value(one))
	}
	return most
}

// SVG draws the sides over the day: pending pods, price, nodes and evictions.
func SVG(r Comparison) ([]byte, error) {
	panels := []struct {
		plot  *plot.Plot
		value func(DaySample) float64
	}{
		{timeline.Panel("pods without a node"), func(s DaySample) float64 { return float64(s.Pending) }},
		{timeline.Panel("US dollars an hour"), func(s DaySample) float64 { return s.PerHour }},
		{timeline.Panel("nodes"), func(s DaySample) float64 { return float64(s.Nodes) }},
		{timeline.Panel("evictions"), func(s DaySample) float64 { return float64(s.Evicted) }},
	}
	var plots []*plot.Plot
	for i, panel := range panels {
		for stroke, side := range r.Sides {
			if len(side.Samples) == 0 {
				return nil, fmt.Errorf("drawing a comparison: %s has no samples", side.Name)
			}
			name := side.Name
			if i > 0 {
				name = "" // The first panel has the legend.
			}
			points := timeline.Points(side.Samples, func(s DaySample) time.Duration { return r.wall(s.At) }, panel.value)
			if err := timeline.Line(panel.plot, name, stroke, points); err != nil {
				return nil, err
			}
		}
		plots = append(plots, panel.plot)
	}
	plots[0].Y.Max *= 1.3 // Space for the legend.
	return timeline.SVG(r.wall(r.To), r.hours(), plots...)
}

// wall returns the real time since the beginning of the load at a time of day.
func (r Comparison) wall(at time.Duration) time.Duration {
	return time.Duration(float64(at-r.From) / r.Pace)
}

// hours returns an act for every six hours of the day.
func (r Comparison) hours() []timeline.Act {
	const every = 6 * time.Hour
	var out []timeline.Act
	for from, to := r.From, time.Duration(0); from < r.To; from = to {
		to = min(r.To, from.Truncate(every)+every)
		out = append(out, timeline.Act{Name: fmt.Sprintf("from %g:00", from.Hours()), From: r.wall(from), To: r.wall(to)})
	}
	return out
}
