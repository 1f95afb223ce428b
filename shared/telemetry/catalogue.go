package telemetry

import "slices"

// Kind is what a metric does.
type Kind string

// The kinds of metrics.
const (
	// Counter only grows.
	Counter Kind = "counter"
	// Gauge is what it was set to last.
	Gauge Kind = "gauge"
	// Histogram counts values by size.
	Histogram Kind = "histogram"
	// Summary keeps quantiles of recent values, where Karpenter does.
	Summary Kind = "summary"
)

// Metric is one entry of the catalogue. Prometheus' instruments, CloudWatch's metrics,
// dashboards and documentation are made of it.
type Metric struct {
	// Name is the Prometheus name, unit and all. CloudWatch's is the same.
	Name string
	Kind Kind
	// Unit is in UCUM: "s", "{message}".
	Unit   string
	Help   string
	Labels []Label
	// Buckets are the upper bounds of a histogram, in Unit.
	Buckets []float64
	// Services emit it.
	Services []string
	// Panel is the title of the panel that draws it, and By the labels that its lines
	// are told apart by.
	Panel string
	By    []string
	// CloudWatch are its dimensions there: "cluster", and names of labels. It is sent by
	// what runs as a function, where nobody scrapes, and from inside of the cluster where
	// somebody asks for it; nil is never. Each set of values is a metric that CloudWatch
	// bills, so few are best.
	CloudWatch []string
}

// Label is one dimension of a metric.
type Label struct {
	Name, Help string
	// Max is how many values there can be.
	Max int
	// Bare leaves a value empty that is, as Karpenter does; elsewhere it is none.
	Bare bool
}

// ByCluster is the one dimension of CloudWatch that is no label.
const ByCluster = "cluster"

// The services that take messages, and those that look at the cluster. What runs inside of
// the cluster is scraped; the others run as functions, or as pollers.
var (
	everyone = []string{"planner", "disruption", "interruption", "catalog", "launcher", "lifecycle"}
	// asFunctions are those that may run as functions.
	asFunctions = []string{"planner", "disruption", "interruption", "catalog", "launcher"}
	looking     = []string{"watcher", "lifecycle"}
)

// Inside reports whether a metric is only of services inside of the cluster, which tell
// CloudWatch where that was asked for.
func (m Metric) Inside() bool {
	return !slices.ContainsFunc(m.Services, func(service string) bool { return !slices.Contains(looking, service) })
}

// Catalogue is all of them.
var Catalogue = slices.Concat(pipeline, story, inside, voluntary, weighed)

// Namespace is where the metrics are in CloudWatch.
const Namespace = "Joist"
