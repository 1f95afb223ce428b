package board

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// MetricsPage returns deploy/docs/metrics.md.
func MetricsPage() []byte {
	var out bytes.Buffer
	out.WriteString(`# Metrics, dashboards and alarms

This page, the dashboards and the alarms are generated from the metric catalogue in ` + "`shared/host/metric`" + `.

## Where metrics are

| service | Prometheus | CloudWatch, namespace ` + "`" + Namespace + "`" + ` |
|---|---|---|
| watcher, lifecycle | ` + "`/metrics`" + ` on METRICS_PORT (8080) | with ` + "`settings.cloudWatchMetrics`" + `, each minute |
| the others, as Lambda functions | no | in the embedded metric format (EMF) in the function's log, at the end of each invocation |
| the others, as pollers outside of the cluster | ` + "`/metrics`" + ` on METRICS_PORT (8080) | no |

Names are the same in both. CloudWatch has only the metrics with dimensions in the tables below.

## Metrics of the cluster in CloudWatch

The chart's ` + "`settings.cloudWatchMetrics`" + ` (JOIST_CLOUDWATCH_METRICS) makes watcher and lifecycle send their metrics in EMF each minute. They need no AWS permission for it. There are two ways:

- ` + "`tcp://cloudwatch-agent.amazon-cloudwatch:25888`" + ` sends them to a CloudWatch agent, which needs ` + "`{\"logs\":{\"metrics_collected\":{\"emf\":{}}}}`" + ` in its configuration and uses its own role.
  Metrics that the agent does not accept are lost, and the service logs the error.
- ` + "`stdout`" + ` writes them to the log, for a log router that sends lines to CloudWatch Logs unchanged (Fluent Bit with ` + "`log_key log`" + `). Container Insights' configuration wraps lines, and CloudWatch then finds no metrics in them.

The agent writes to the log group ` + "`/joist/<cluster>/metrics`" + `, which the CDK app creates with a retention of 30 days. If the agent starts before the group exists, it creates the group
without retention: delete that group before you deploy the app.

Also set the CDK app's key ` + "`cloudWatchMetrics`" + `: it adds the panels and alarms that need these metrics. Without it they are left out.

## Dashboards

| dashboard | what it shows |
|---|---|
| CloudWatch, created by the CDK app | queues, functions and their metrics ([demo data](figures/dashboards-cloudwatch.svg)); with ` + "`cloudWatchMetrics`" + ` also watcher and lifecycle ([demo data](figures/dashboards-cloudwatch-inside.svg)) |
`)
	for _, d := range Dashboards {
		fmt.Fprintf(&out, "| [%s](../grafana/%s.json) | %s ([demo data](figures/dashboards-%s.svg)) |\n", d.Name, d.Name, d.Title, strings.TrimPrefix(d.Name, "joist-"))
	}
	out.WriteString("\n## Alarms\n\nThe Prometheus alerts are in [alerts.yaml](../grafana/alerts.yaml). The CDK app creates the CloudWatch alarms.\n\n" +
		"| alarm | pages | meaning | first command | CloudWatch | Prometheus |\n|---|---|---|---|---|---|\n")
	for _, w := range Alerts {
		fmt.Fprintf(&out, "| [%s](runbooks/%s) | %s | %s | `%s` | %s | %s |\n", w.Name, path.Base(w.Runbook()), yesOrNo(w.IsPage), w.Meaning, w.FirstStep, cloudWatchColumn(w), yesOrNo(w.Expr != ""))
	}
	out.WriteString("\n## Metrics\n")
	for _, row := range Rows {
		fmt.Fprintf(&out, "\n### %s\n\n| metric | kind, unit | labels | from | dimensions in CloudWatch | meaning |\n|---|---|---|---|---|---|\n", row.Title)
		for _, panel := range row.Panels {
			for _, m := range panel.panelMetrics() {
				fmt.Fprintf(&out, "| `%s` | %s, %s | %s | %s | %s | %s |\n",
					m.Name, m.Kind, m.Unit, labelColumn(m), strings.Join(m.Services, ", "), strings.Join(m.CloudWatch, ", "), m.Help)
			}
		}
	}
	out.WriteString("\n### Nodes and pods\n\nThese have a series for each node and resource, and for each pod, as in Karpenter. The leading watcher computes them from its cache at each scrape and keeps nothing. " +
		"A scrape has about 12 KB for a node and 1 KB for a pod, so clusters of more than 2,000 nodes have no series for each node, and those of more than 20,000 pods none for each pod: use kube-state-metrics there. " +
		"Joist's dashboards do not use them; [Karpenter's do](tools.md#karpenters-grafana-dashboards). Drop them if you do not need them: `serviceMonitor.metricRelabelings` with the action `drop` and the regex `karpenter_(nodes_(allocatable|system_overhead|total_.*|current_lifetime_seconds)|pods_state)`.\n\n" +
		"The labels of nodes are the well-known labels: `" + strings.Join(metric.NodeLabels, "`, `") + "`; and `node_name`, `phase` and `managed`.\n\n" +
		"| metric | kind, unit | labels | from | meaning |\n|---|---|---|---|---|\n")
	for _, m := range metric.Catalogue {
		if m.PerObject {
			fmt.Fprintf(&out, "| `%s` | %s, %s | %s | %s | %s |\n", m.Name, m.Kind, m.Unit, objectLabels(m), strings.Join(m.Services, ", "), m.Help)
		}
	}
	out.WriteString("\n## Karpenter's metrics\n\nThe metrics above that begin with `karpenter_`, `client_go_` and `aws_sdk_go_` have the names, labels and meaning of Karpenter v1.15, so its dashboards keep working. " +
		"Other controllers also export `rest_client_` metrics, and Karpenter all of these: if one Prometheus scrapes them, append `and on (instance, job) joist_build_info` to a query, as Joist's dashboards do. " +
		"Times start when Joist observed the change, which is within a second.\n" +
		"Metrics of Karpenter's libraries are absent: `operator_` (conditions, with the label `to_status`; the objects have them with their times), `controller_runtime_` and `workqueue_`.\nKarpenter's other metrics:\n\n| Karpenter | Joist | why |\n|---|---|---|\n")
	for _, o := range metric.KarpenterMetrics {
		like := "absent"
		if o.Like != "" {
			like = "similar: `" + o.Like + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", o.Name, like, o.Why)
	}
	return out.Bytes()
}

// cloudWatchColumn returns when CloudWatch has the alarms of an alert.
func cloudWatchColumn(w Alert) string {
	if w.inside {
		return "with `cloudWatchMetrics`"
	}
	return "yes"
}

// objectLabels names the labels of a metric with a series for each object.
func objectLabels(m metric.Metric) string {
	var all []string
	for _, l := range m.Labels {
		if !slices.Contains(metric.NodeLabels, l.Name) || len(m.Labels) < len(metric.NodeLabels) {
			all = append(all, "`"+l.Name+"`")
		}
	}
	if len(m.Labels) > len(metric.NodeLabels) {
		all = append([]string{"those of nodes"}, all...)
	}
	return strings.Join(all, ", ")
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func labelColumn(m metric.Metric) string {
	var all []string
	for _, l := range m.Labels {
		all = append(all, "`"+l.Name+"`: "+l.Help)
	}
	return strings.Join(all, "; ")
}
