package board

import (
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Alert is a condition that needs an operator's attention. It is one alert in Prometheus,
// and one or several alarms in CloudWatch.
type Alert struct {
	// Name is also the name of the runbook: deploy/docs/runbooks/<name>.md.
	Name string
	// Meaning is the sentence that the notification shows.
	Meaning string
	// IsPage marks an alarm that pages the person on call; others wait for working hours.
	IsPage bool
	// FirstStep is the command to run first, with NAME in place of the cluster's name.
	FirstStep string
	// Expr is the condition in PromQL, and For how long it must hold. It is empty if only
	// CloudWatch has the metric.
	Expr string
	For  time.Duration
	// cloudWatch returns the alarms of a cluster.
	cloudWatch func(p topology.Plan) []Alarm
	// inside marks alarms on metrics of the services inside of the cluster.
	inside bool
}

// Cluster is the cluster of a dashboard and its alarms.
type Cluster struct {
	topology.Plan
	// Inside means that the services inside the cluster send metrics to CloudWatch (settings.CloudWatch). Without it,
	// panels and alarms on these metrics are left out.
	Inside bool
}

// Alarm is one alarm of CloudWatch, with the names of its API
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html).
type Alarm struct {
	// Name is unique in an account and region.
	Name string
	// Alert is the name of the alert and of the runbook.
	Alert string
	// Description holds the meaning, the first command and the runbook.
	Description string
	// Metrics holds the metric to compare, or several metrics that Expression combines by
	// their ids.
	Metrics    []Metric
	Expression string
	Threshold  float64
	// Comparison is GreaterThanThreshold or LessThanThreshold.
	Comparison string
	// Periods is how many periods are evaluated, and Datapoints how many of them must
	// breach the threshold.
	Periods, Datapoints int
	// Missing is the treatment of missing data: notBreaching or breaching.
	Missing string
	IsPage  bool
	// Runbook is the path of the page in the repository.
	Runbook   string
	FirstStep string
}

// Metric is one series of CloudWatch.
type Metric struct {
	// ID names the metric in an expression.
	ID, Namespace, Name string
	Dimensions          []Dimension
	// Statistic is for example Sum or Maximum. Period is in seconds.
	Statistic string
	Period    int
}

// Dimension is one dimension of a metric.
type Dimension struct{ Name, Value string }

// Values of CloudWatch's API.
const (
	above        = "GreaterThanThreshold"
	below        = "LessThanThreshold"
	notBreaching = "notBreaching"
	breaching    = "breaching"
)

// runbooks is the directory of the pages.
const runbooks = "deploy/docs/runbooks/"

// Runbook returns the path of an alert's page in the repository.
func (w Alert) Runbook() string { return runbooks + w.Name + ".md" }

// Alarms returns the alarms of a cluster in CloudWatch, in a fixed order.
func Alarms(c Cluster) []Alarm {
	var all []Alarm
	for _, w := range Alerts {
		if w.inside && !c.Inside {
			continue
		}
		for _, a := range w.cloudWatch(c.Plan) {
			name := c.Prefix + "-joist-" + w.Name
			if a.Name != "" {
				name += "-" + a.Name
			}
			a.Name, a.Alert, a.IsPage, a.FirstStep, a.Runbook = name, w.Name, w.IsPage, strings.ReplaceAll(w.FirstStep, "NAME", c.Cluster), w.Runbook()
			a.Description = w.Meaning + " First: " + a.FirstStep + ". Runbook: " + w.Runbook()
			all = append(all, a)
		}
	}
	return all
}
