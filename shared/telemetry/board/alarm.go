package board

import (
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Watch is something that a person should look at. It is one alarm in Prometheus, and
// one or several in CloudWatch.
type Watch struct {
	// Name is the runbook's: deploy/docs/runbooks/<name>.md.
	Name string
	// Means is a sentence for somebody who was woken.
	Means string
	// Page wakes somebody; otherwise it waits for the morning.
	Page bool
	// First is the command to run first, with NAME for the cluster's.
	First string
	// Expr is the condition in PromQL, and For how long it must hold; an empty one
	// is of what only AWS sees.
	Expr string
	For  time.Duration
	// cloudWatch are the alarms of a cluster.
	cloudWatch func(p topology.Plan) []Alarm
	// inside says that they look at what only the services inside of the cluster tell.
	inside bool
}

// Cluster is what a dashboard and alarms are of.
type Cluster struct {
	topology.Plan
	// Inside says that the services inside of the cluster tell CloudWatch as well, which
	// they do where they are told how (settings.CloudWatch). Without it there are no
	// panels and no alarms of what would never come.
	Inside bool
}

// Alarm is one alarm of CloudWatch, with the names of its API
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html).
type Alarm struct {
	// Name is unique in an account and region.
	Name string
	// Watch is the name of the watch, and so of the runbook.
	Watch string
	// Description has the meaning, the first command and the runbook.
	Description string
	// Metrics are what is looked at. Where there is one, it is compared; else the
	// Expression over their ids.
	Metrics    []Metric
	Expression string
	// Threshold is compared as Comparison says: GreaterThanThreshold or
	// LessThanThreshold.
	Threshold  float64
	Comparison string
	// Periods is how many periods are looked at, and Datapoints how many of them must
	// be bad.
	Periods, Datapoints int
	// Missing is notBreaching or breaching.
	Missing string
	Page    bool
	// Runbook is the page, seen from the repository's top.
	Runbook string
	First   string
}

// Metric is one series of CloudWatch.
type Metric struct {
	// ID is its name in an expression.
	ID, Namespace, Name string
	Dimensions          []Dimension
	// Statistic is Sum, Maximum and so on, and Period in seconds.
	Statistic string
	Period    int
}

// Dimension is one of a series.
type Dimension struct{ Name, Value string }

// The words of CloudWatch's API.
const (
	above     = "GreaterThanThreshold"
	below     = "LessThanThreshold"
	fine      = "notBreaching"
	breaching = "breaching"
)

// runbooks is where the pages are.
const runbooks = "deploy/docs/runbooks/"

// Runbook is the page of a watch, seen from the repository's top.
func (w Watch) Runbook() string { return runbooks + w.Name + ".md" }

// Alarms are the alarms of a cluster in CloudWatch, in a fixed order.
func Alarms(c Cluster) []Alarm {
	var all []Alarm
	for _, w := range Watches {
		if w.inside && !c.Inside {
			continue
		}
		for _, a := range w.cloudWatch(c.Plan) {
			name := c.Prefix + "-joist-" + w.Name
			if a.Name != "" {
				name += "-" + a.Name
			}
			a.Name, a.Watch, a.Page, a.First, a.Runbook = name, w.Name, w.Page, strings.ReplaceAll(w.First, "NAME", c.Cluster), w.Runbook()
			a.Description = w.Means + " First: " + a.First + ". Runbook: " + w.Runbook()
			all = append(all, a)
		}
	}
	return all
}
