package board

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Namespace is the CloudWatch namespace of Joist's metrics.
const Namespace = metric.Namespace

// period is in seconds, the finest resolution of the functions' metrics.
const period = 60

// widget is one of CloudWatch's
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html).
type widget struct {
	Type       string         `json:"type"`
	X          int            `json:"x"`
	Y          int            `json:"y"`
	Width      int            `json:"width"`
	Height     int            `json:"height"`
	Properties map[string]any `json:"properties"`
}

// The grid of CloudWatch has 24 columns.
const (
	columns    = 24
	wide       = 6
	high       = 6
	headerHigh = 1
)

// CloudWatch returns the body of the dashboard of a cluster in its region. It leaves out
// panels whose metrics CloudWatch does not receive.
func CloudWatch(c Cluster, region string) ([]byte, error) {
	var widgets []widget
	y := 0
	for _, row := range Rows {
		var pictures []widget
		for _, panel := range row.Panels {
			series := cloudWatchSeries(panel, c)
			if len(series) == 0 {
				continue
			}
			n := len(pictures)
			pictures = append(pictures, widget{
				Type: "metric", X: n * wide % columns, Y: y + headerHigh + n*wide/columns*high, Width: wide, Height: high,
				Properties: map[string]any{
					"title": panel.Title, "view": "timeSeries", "stacked": false, "region": region, "period": period,
					"metrics": series, "yAxis": map[string]any{"left": map[string]any{"min": 0}},
				},
			})
		}
		if len(pictures) == 0 {
			continue
		}
		widgets = append(widgets, textWidget(y, "## "+row.Title+"\n"+row.Help))
		widgets = append(widgets, pictures...)
		y = pictures[len(pictures)-1].Y + high
	}
	where := "Metrics of `watcher` and `lifecycle` (joined nodes, drains, pod startup, cost by NodePool) are in Grafana. Set `settings.cloudWatchMetrics` in the chart to show them here."
	if c.Inside {
		where = "Grafana's dashboards show the same metrics with more labels."
	}
	widgets = append(widgets, textWidget(y, where))
	out, err := json.MarshalIndent(map[string]any{"widgets": widgets}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the dashboard of cluster %s: %w", c.Cluster, err)
	}
	return append(out, '\n'), nil
}

func textWidget(y int, markdown string) widget {
	return widget{Type: "text", Y: y, Width: columns, Height: headerHigh, Properties: map[string]any{"markdown": markdown, "background": "transparent"}}
}

// cloudWatchSeries returns the lines of a panel.
func cloudWatchSeries(panel Panel, c Cluster) [][]any {
	var lines [][]any
	for _, m := range panel.panelMetrics() {
		if m.CloudWatch != nil && (c.Inside || !m.Inside()) {
			lines = append(lines, catalogueLines(m, c.Cluster)...)
		}
	}
	return append(lines, awsLines(panel.aws, c.Plan)...)
}

// statistics returns the statistics to show for a kind of metric.
func statistics(kind metric.Kind) []string {
	switch kind {
	case metric.Counter:
		return []string{"Sum"}
	case metric.Gauge:
		return []string{"Maximum"}
	default:
		return []string{"p50", "p99"}
	}
}

// catalogueLines returns the lines of a metric in the catalogue. It uses SEARCH for metrics with
// labels, because their values are not known in advance.
func catalogueLines(m metric.Metric, cluster string) [][]any {
	var lines [][]any
	for _, statistic := range statistics(m.Kind) {
		if len(m.CloudWatch) == 1 {
			lines = append(lines, []any{Namespace, m.Name, metric.ByCluster, cluster, map[string]any{"stat": statistic, "label": shortName(m.Name) + statisticSuffix(statistic)}})
			continue
		}
		search := fmt.Sprintf("SEARCH('{%s,%s} MetricName=\"%s\" %s=\"%s\"', '%s', %d)",
			Namespace, strings.Join(m.CloudWatch, ","), m.Name, metric.ByCluster, cluster, statistic, period)
		values := make([]string, 0, len(m.CloudWatch))
		for _, dimension := range slices.DeleteFunc(slices.Clone(m.CloudWatch), func(d string) bool { return d == metric.ByCluster }) {
			values = append(values, "${PROP('Dim."+dimension+"')}")
		}
		lines = append(lines, []any{map[string]any{"expression": search, "label": shortName(m.Name) + " " + strings.Join(values, " ") + statisticSuffix(statistic)}})
	}
	return lines
}

// statisticSuffix names the statistic in a legend if there are several.
func statisticSuffix(statistic string) string {
	if strings.HasPrefix(statistic, "p") {
		return " " + statistic
	}
	return ""
}

// shortName removes common prefixes and suffixes from a metric name.
func shortName(name string) string {
	for _, prefix := range []string{"joist_", "karpenter_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	for _, end := range []string{"_total", "_seconds"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.ReplaceAll(name, "_", " ")
}

// awsLines returns the lines of metrics that SQS and Lambda publish.
func awsLines(of source, p topology.Plan) [][]any {
	var lines [][]any
	sqs := func(metric, queue, label string) {
		lines = append(lines, []any{"AWS/SQS", metric, "QueueName", queue, map[string]any{"stat": "Maximum", "label": label}})
	}
	for _, q := range p.Queues {
		switch of {
		case oldest:
			sqs("ApproximateAgeOfOldestMessage", q.Name, q.Service)
		case waiting:
			sqs("ApproximateNumberOfMessagesVisible", q.Name, q.Service)
		case dead:
			sqs("ApproximateNumberOfMessagesVisible", q.Dead, q.Service+" DLQ")
		default:
		}
	}
	whose := ""
	if p.HasSharedFunctions() {
		whose = ", of all clusters"
	}
	for _, service := range topology.ExternalServices {
		if metric := map[source]string{failing: "Errors", throttled: "Throttles"}[of]; metric != "" {
			lines = append(lines, []any{"AWS/Lambda", metric, "FunctionName", p.FunctionName(service), map[string]any{"stat": "Sum", "label": service + whose}})
		}
	}
	return lines
}
