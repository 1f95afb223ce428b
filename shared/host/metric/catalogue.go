// Package metric is the catalogue of the metrics of all services.
//
// Each metric has one meaning, the maximum number of values of each label, and one panel. Only the services named in its
// entry record it. Prometheus' instruments, CloudWatch's metrics, the dashboards and the documentation are generated from
// the catalogue. The package has no dependencies, so that every package of a service can import it.
package metric

import "slices"

// Kind is the kind of a metric.
type Kind string

// The kinds of metrics.
const (
	// Counter only increases.
	Counter Kind = "counter"
	// Gauge has the value that was set last.
	Gauge Kind = "gauge"
	// Histogram counts values in buckets.
	Histogram Kind = "histogram"
	// Summary has quantiles of recent values, where Karpenter has a summary.
	Summary Kind = "summary"
)

// Metric is one entry of the catalogue. Prometheus' instruments, CloudWatch's metrics,
// dashboards and documentation are generated from it.
type Metric struct {
	// Name is the name in Prometheus, including the unit, and in CloudWatch.
	Name string
	Kind Kind
	// Unit is in UCUM: "s", "{message}".
	Unit   string
	Help   string
	Labels []Label
	// Buckets are the upper bounds of a histogram, in Unit.
	Buckets []float64
	// Services lists the services that emit it.
	Services []string
	// PerObject metrics have a series for each node or pod, which is computed at each scrape. They are drawn by Karpenter's
	// dashboards, have no panel, and are never sent to CloudWatch.
	PerObject bool
	// Panel is the title of its panel, and By the labels that separate its lines there.
	Panel string
	By    []string
	// CloudWatch lists its dimensions there: "cluster", and names of labels. Functions send
	// it, and services inside of the cluster if configured. A metric with nil is not sent.
	// CloudWatch bills each combination of values, so use few.
	CloudWatch []string
}

// Recorder records values: it adds to a counter, sets a gauge or observes a value in a histogram, with the values of the
// metric's labels in the order of the catalogue. A gauge that is set to NaN is deleted.
type Recorder func(m Metric, value float64, labels ...string)

// Record records a value. A nil Recorder discards it.
func (r Recorder) Record(m Metric, value float64, labels ...string) {
	if r != nil {
		r(m, value, labels...)
	}
}

// Label is one dimension of a metric.
type Label struct {
	Name, Help string
	// Max is the maximum number of values.
	Max int
	// Bare keeps an empty value empty, as Karpenter does; otherwise it becomes none.
	Bare bool
	// Implied means that the value follows from that of another label, so it adds no series.
	Implied bool
}

// ByCluster is the only dimension in CloudWatch that is not a label.
const ByCluster = "cluster"

// Services that process messages, services that can run as functions, and services inside
// of the cluster, which reconcile it.
var (
	consumers           = []string{"planner", "disruption", "interruption", "catalog", "launcher", "lifecycle"}
	functionServices    = []string{"planner", "disruption", "interruption", "catalog", "launcher"}
	reconcilingServices = []string{"watcher", "lifecycle"}
)

// Inside reports whether only services inside of the cluster emit a metric. They send it to
// CloudWatch if configured.
func (m Metric) Inside() bool {
	return !slices.ContainsFunc(m.Services, func(service string) bool { return !slices.Contains(reconcilingServices, service) })
}

// Catalogue lists all metrics.
var Catalogue = slices.Concat(messageMetrics, planningMetrics, clusterMetrics, disruptionMetrics, consolidationMetrics, callMetrics, objectMetrics)

// Namespace is the CloudWatch namespace of the metrics.
const Namespace = "Joist"
