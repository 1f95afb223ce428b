package board

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Alerts lists every alarm, the most urgent first.
var Alerts = []Alert{
	{
		Name: "dlq-messages", IsPage: true, FirstStep: "joist dead list --cluster NAME",
		Meaning:    "A message could not be processed and was moved to a DLQ.",
		Expr:       "sum by (service) (increase(joist_dlq_messages_total[10m])) > 0",
		cloudWatch: alarmPerQueue(deadLetterAlarm),
	},
	{
		Name: "oldest-message", IsPage: true, FirstStep: "joist queues --cluster NAME",
		Meaning: "The oldest message in a queue has waited longer than the limit of its service, or messages of a service fail again and again until they expire.",
		Expr: "histogram_quantile(0.9, sum by (le, service) (rate(joist_event_age_seconds_bucket[5m]))) > 60 or" +
			` sum by (service) (increase(joist_retries_overdue_total{service!="lifecycle"}[2m])) > 0`,
		For:        3 * time.Minute,
		cloudWatch: alarmPerQueue(messageAgeAlarm),
	},
	{
		Name: "drain-overdue", IsPage: true, FirstStep: "joist queues --cluster NAME",
		Meaning:    "AWS terminated an instance at the announced time, and its node was not fully drained.",
		Expr:       "sum by (nodepool) (increase(joist_drains_overdue_total[10m])) > 0",
		cloudWatch: anyCountAlarm(metric.DrainsOverdue), inside: true,
	},
	{
		Name: "bug", IsPage: true, FirstStep: "joist dead list --cluster NAME",
		Meaning:    "A handler panicked or hit an internal error.",
		Expr:       `sum by (service) (increase(joist_events_refused_total{kind="bug"}[10m])) > 0`,
		cloudWatch: errorKindAlarm("bug", 0),
	},
	{
		Name: "garbage-collection-stopped", IsPage: true, FirstStep: "joist doctor --cluster NAME",
		Meaning:    "Lifecycle refused to remove more than three nodes and more than a tenth of the cluster at once.",
		Expr:       "sum(increase(joist_garbage_collections_stopped_total[10m])) > 0",
		cloudWatch: anyCountAlarm(metric.GarbageCollectionStopped), inside: true,
	},
	{
		Name: "watcher-silent", IsPage: true, FirstStep: "joist doctor --cluster NAME",
		Meaning:    "The watcher has stopped sending messages: pending pods get no nodes.",
		Expr:       `(sum(increase(joist_messages_sent_total{service="watcher"}[2m])) or vector(0)) < 1`,
		For:        time.Minute,
		cloudWatch: watcherSilentAlarm,
	},
	{
		Name: "denied", IsPage: true, FirstStep: "joist doctor --cluster NAME",
		Meaning:    "AWS or Kubernetes denied a call: a permission is missing.",
		Expr:       `sum by (service) (increase(joist_events_refused_total{kind="denied"}[10m])) > 0`,
		cloudWatch: errorKindAlarm("denied", 0),
	},
	{
		Name: "poison", FirstStep: "joist dead list --cluster NAME",
		Meaning:    "More than five messages within five minutes were malformed or inconsistent.",
		Expr:       `sum by (service) (increase(joist_events_refused_total{kind="poison"}[5m])) > 5`,
		cloudWatch: errorKindAlarm("poison", 5),
	},
	{
		Name: "launch-failures", FirstStep: "joist doctor --cluster NAME",
		Meaning: "EC2 refused more than half of the launches of the last 15 minutes.",
		Expr: `sum(increase(joist_launch_refusals_total[15m])) > 4 and` +
			` sum(increase(joist_launch_refusals_total[15m])) > (sum(increase(joist_instances_launched_total[15m])) or vector(0))`,
		cloudWatch: launchErrorAlarm,
	},
	{
		Name: "launches-paused", IsPage: true, FirstStep: "joist queues --cluster NAME",
		Meaning:    "Launches paused: the requested instances exceed the safety limit of the launcher.",
		Expr:       "sum(increase(joist_launches_paused_total[10m])) > 0",
		cloudWatch: anyCountAlarm(metric.LaunchesPaused),
	},
	{
		Name: "foreign-requests", IsPage: true, FirstStep: "joist doctor --cluster NAME",
		Meaning: "A request was refused: it would change an AWS resource that does not belong to the cluster, or it invoked a function with records that are not in the queue of that function.",
		Expr: "(sum(increase(joist_foreign_requests_refused_total[10m])) or vector(0)) +" +
			" (sum(increase(joist_records_refused_total[10m])) or vector(0)) > 0",
		cloudWatch: eitherCountAlarm(metric.ForeignRequestsRefused, metric.RecordsRefused),
	},
	{
		Name: "reconciles-failing", IsPage: true, FirstStep: "joist doctor --cluster NAME",
		Meaning:    "The watcher or lifecycle cannot reconcile the cluster, or it has no leader.",
		Expr:       withoutReconciles() + " or " + reconcileRate("!=") + " > " + reconcileRate("="),
		For:        5 * time.Minute,
		cloudWatch: reconcileAlarms, inside: true,
	},
	{
		Name: "function-failing", IsPage: true, FirstStep: "joist queues --cluster NAME",
		Meaning:    "A Lambda function fails, times out or is throttled.",
		cloudWatch: functionAlarms,
	},
	{
		Name: "dispositions-failed", FirstStep: "joist doctor --cluster NAME",
		Meaning:    "Processed messages could not be deleted, delayed or moved to the DLQ, and are delivered again.",
		Expr:       "sum by (service) (increase(joist_dispositions_failed_total[15m])) > 10",
		cloudWatch: sustainedCountAlarm(metric.DispositionFailures, 10),
	},
	{
		Name: "clock-skew", FirstStep: "joist doctor --cluster NAME",
		Meaning:    "The clock of a sender is more than a minute ahead of SQS, and the deadlines in its messages are wrong by as much.",
		Expr:       "sum by (service) (increase(joist_events_skewed_total[15m])) > 0",
		For:        15 * time.Minute,
		cloudWatch: sustainedCountAlarm(metric.ClockSkews, 0),
	},
}

// Budgets is the maximum age of the oldest message of each service. The service's card
// states the same time.
var Budgets = map[string]time.Duration{
	"planner": time.Minute, "disruption": 2 * time.Minute, "interruption": 20 * time.Second,
	"catalog": 2 * time.Minute, "launcher": time.Minute, "lifecycle": time.Minute,
}

// inventoryInterval is the interval at which the watcher requests an inventory.
const inventoryInterval = 30 * time.Second

func alarmPerQueue(alarm func(p topology.Plan, q topology.Queue) Alarm) func(p topology.Plan) []Alarm {
	return func(p topology.Plan) []Alarm {
		var all []Alarm
		for _, q := range p.Queues {
			a := alarm(p, q)
			a.Name = q.Service
			all = append(all, a)
		}
		return all
	}
}

func deadLetterAlarm(_ topology.Plan, q topology.Queue) Alarm {
	return Alarm{
		Metrics:    []Metric{sqsMetric("ApproximateNumberOfMessagesVisible", q.Dead, "Maximum", period)},
		Comparison: above, Periods: 1, Datapoints: 1, Missing: notBreaching,
	}
}

// messageAgeAlarm requires three bad minutes of five, but one for interruption: a spot instance has only two minutes.
//
// SQS leaves a message out of its age from the third receive on, so messages that fail again and again do not raise it.
// For the services that run as functions the alarm also counts overdue retries: each exceeds the limit. Lifecycle also
// retries messages to wait, for example for the end of a batch. It is one alarm for both metrics, because CloudFormation
// limits the resources of a template. FILL and MAX give the other value while a metric has no data.
func messageAgeAlarm(p topology.Plan, q topology.Queue) Alarm {
	periods, datapoints, limit := 5, 3, Budgets[q.Service].Seconds()
	if q.Service == "interruption" {
		periods, datapoints = 1, 1
	}
	a := Alarm{
		Metrics:   []Metric{sqsMetric("ApproximateAgeOfOldestMessage", q.Name, "Maximum", period)},
		Threshold: limit, Comparison: above, Periods: periods, Datapoints: datapoints, Missing: notBreaching,
	}
	if slices.Contains(topology.ExternalServices, q.Service) {
		overdue := counterSum(metric.RetriesOverdue, p, Dimension{"service", q.Service})
		overdue.ID, overdue.Period = "m2", period
		a.Metrics = append(a.Metrics, overdue)
		a.Expression = fmt.Sprintf("MAX([FILL(m1,0), FILL(m2,0)*%.0f])", limit+1)
	}
	return a
}

func sqsMetric(metric, queue, statistic string, seconds int) Metric {
	return Metric{ID: "m1", Namespace: "AWS/SQS", Name: metric, Dimensions: []Dimension{{"QueueName", queue}}, Statistic: statistic, Period: seconds}
}

// counterSum returns the sum of a counter in the catalogue.
func counterSum(m metric.Metric, p topology.Plan, more ...Dimension) Metric {
	return Metric{
		ID: "m1", Namespace: Namespace, Name: m.Name, Statistic: "Sum", Period: fiveMinutes,
		Dimensions: append([]Dimension{{metric.ByCluster, p.Cluster}}, more...),
	}
}

const fiveMinutes = 300

func errorKindAlarm(kind string, threshold float64) func(p topology.Plan) []Alarm {
	return func(p topology.Plan) []Alarm {
		return []Alarm{{
			Metrics:   []Metric{counterSum(metric.HandlingErrors, p, Dimension{"kind", kind})},
			Threshold: threshold, Comparison: above, Periods: 1, Datapoints: 1, Missing: notBreaching,
		}}
	}
}

func anyCountAlarm(m metric.Metric) func(p topology.Plan) []Alarm {
	return func(p topology.Plan) []Alarm {
		return []Alarm{{Metrics: []Metric{counterSum(m, p)}, Comparison: above, Periods: 1, Datapoints: 1, Missing: notBreaching}}
	}
}

// eitherCountAlarm fires when one of two counters grows. It is one alarm, because CloudFormation
// limits the resources of a template.
func eitherCountAlarm(one, other metric.Metric) func(p topology.Plan) []Alarm {
	return func(p topology.Plan) []Alarm {
		first, second := counterSum(one, p), counterSum(other, p)
		second.ID = "m2"
		return []Alarm{{
			Metrics: []Metric{first, second}, Expression: "FILL(m1,0)+FILL(m2,0)", Comparison: above, Periods: 1, Datapoints: 1, Missing: notBreaching,
		}}
	}
}

// sustainedCountAlarm fires when a counter exceeds the threshold in three periods in a row (15 minutes).
func sustainedCountAlarm(m metric.Metric, threshold float64) func(p topology.Plan) []Alarm {
	return func(p topology.Plan) []Alarm {
		return []Alarm{{Metrics: []Metric{counterSum(m, p)}, Threshold: threshold, Comparison: above, Periods: 3, Datapoints: 3, Missing: notBreaching}}
	}
}

// launchErrorAlarm fires when EC2 refuses more than half of the launches, and more than four, in
// each of three periods.
func launchErrorAlarm(p topology.Plan) []Alarm {
	a := Alarm{Threshold: 0.5, Comparison: above, Periods: 3, Datapoints: 3, Missing: notBreaching}
	refused, launched := "", ""
	for i, sold := range []string{"spot", "on-demand", "reserved"} {
		for _, of := range []struct {
			metric metric.Metric
			id     string
			sum    *string
		}{{metric.LaunchErrors, "r", &refused}, {metric.InstancesLaunched, "l", &launched}} {
			m := counterSum(of.metric, p, Dimension{"capacity_type", sold})
			m.ID = fmt.Sprintf("%s%d", of.id, i)
			a.Metrics = append(a.Metrics, m)
			if *of.sum != "" {
				*of.sum += "+"
			}
			*of.sum += "FILL(" + m.ID + ",0)"
		}
	}
	a.Expression = fmt.Sprintf("IF((%[1]s)>4, (%[1]s)/((%[1]s)+(%[2]s)), 0)", refused, launched)
	return []Alarm{a}
}

// watcherSilentAlarm counts the messages sent to the catalog's queue. The watcher sends at least one each
// inventoryInterval, in addition to the scheduled ticks. It fires when more than half of the watcher's messages are
// missing.
func watcherSilentAlarm(p topology.Plan) []Alarm {
	const seconds = 120
	q, ok := p.Queue("catalog")
	if !ok {
		return nil
	}
	expected := seconds / inventoryInterval.Seconds() / 2
	for _, t := range p.Ticks {
		if t.Service == q.Service {
			expected += seconds / t.Every.Seconds()
		}
	}
	return []Alarm{{
		Metrics:   []Metric{sqsMetric("NumberOfMessagesSent", q.Name, "Sum", seconds)},
		Threshold: expected, Comparison: below, Periods: 2, Datapoints: 2, Missing: breaching,
	}}
}

// reconcileRate returns the rate of reconciles of each service that succeed (=) or fail (!=).
func reconcileRate(well string) string {
	return `sum by (service) (rate(joist_reconcile_seconds_count{result` + well + `"ok"}[5m]))`
}

// withoutReconciles selects the services without a successful reconcile. A service without a leader
// has no series, so each service gets a zero.
func withoutReconciles() string {
	well := []string{reconcileRate("=")}
	for _, service := range topology.ClusterServices {
		well = append(well, fmt.Sprintf(`label_replace(vector(0), "service", %q, "", "")`, service))
	}
	return "(" + strings.Join(well, " or ") + ") == 0"
}

// reconcileAlarms fires for each service inside of the cluster that does not reconcile, or of which
// at least as many reconciles fail as succeed.
func reconcileAlarms(p topology.Plan) []Alarm {
	var all []Alarm
	for _, service := range topology.ClusterServices {
		whole, failed := counterSum(metric.ReconcileTime, p, Dimension{"service", service}), counterSum(metric.ReconcileFailures, p, Dimension{"service", service})
		whole.Statistic, failed.ID = "SampleCount", "m2"
		all = append(all, Alarm{
			Name: service, Metrics: []Metric{whole, failed}, Expression: "IF(FILL(m1,0) <= 2*FILL(m2,0), 1, 0)",
			Comparison: above, Periods: 2, Datapoints: 2, Missing: breaching,
		})
	}
	return all
}

// functionAlarms returns no alarms where clusters share functions: the stack that owns the
// functions has their alarms.
func functionAlarms(p topology.Plan) []Alarm {
	if p.HasSharedFunctions() {
		return nil
	}
	var all []Alarm
	for _, service := range topology.ExternalServices {
		a := Alarm{Name: service, Expression: "FILL(m1,0)+FILL(m2,0)", Comparison: above, Periods: 5, Datapoints: 3, Missing: notBreaching}
		for i, metric := range []string{"Errors", "Throttles"} {
			a.Metrics = append(a.Metrics, Metric{
				ID: fmt.Sprintf("m%d", i+1), Namespace: "AWS/Lambda", Name: metric,
				Dimensions: []Dimension{{"FunctionName", p.FunctionName(service)}}, Statistic: "Sum", Period: period,
			})
		}
		all = append(all, a)
	}
	return all
}
