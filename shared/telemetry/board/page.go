package board

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/joist-autoscaler/joist/shared/telemetry"
)

// Page is deploy/docs/metrics.md.
func Page() []byte {
	var out bytes.Buffer
	out.WriteString(`# Metrics, dashboards and alarms

This page is made of the catalogue in ` + "`shared/telemetry`" + `, and so are the instruments, the dashboards and the alarms.

What runs in the cluster (watcher, lifecycle) serves ` + "`/metrics`" + ` on METRICS_PORT, 8080 by default. What runs as a Lambda function writes the metrics
marked with dimensions below to its log in the embedded metric format at the end of each invocation, and CloudWatch reads them there, in the
namespace ` + "`" + Namespace + "`" + ` under the same names. As a poller outside of the cluster it serves ` + "`/metrics`" + ` instead.

## What runs in the cluster, in CloudWatch

With the chart's ` + "`settings.cloudWatchMetrics`" + ` (JOIST_CLOUDWATCH_METRICS) watcher and lifecycle send theirs each minute, too, in the same format and with no
right at AWS: to a CloudWatch agent, whose own role has that, as ` + "`tcp://cloudwatch-agent.amazon-cloudwatch:25888`" + `, where the agent's configuration has
` + "`{\"logs\":{\"metrics_collected\":{\"emf\":{}}}}`" + `; or with ` + "`stdout`" + ` to their log, for a log router that sends lines to CloudWatch Logs as they are (Fluent Bit does
with ` + "`log_key log`" + `; Container Insights' own configuration wraps them, and CloudWatch then finds no metrics in them). What an agent does not take is lost, and
told in the log. What it takes it writes to the log group ` + "`/joist/<cluster>/metrics`" + `, which the CDK app makes, to be kept for 30 days: an agent that finds none
makes one that is kept for ever, and which is to be deleted before the app can make its own. The CDK app's key ` + "`cloudWatchMetrics`" + ` adds their panels to the dashboard, and the alarms that need them: without it they would wait for
metrics that nobody sends.

| dashboard | what it shows |
|---|---|
| CloudWatch, made by the CDK app | queues and functions, and what the functions count ([with demo data](figures/dashboards-cloudwatch.svg)); with ` + "`cloudWatchMetrics`" + ` what runs in the cluster as well ([with demo data](figures/dashboards-cloudwatch-inside.svg)) |
`)
	for _, d := range Dashboards {
		fmt.Fprintf(&out, "| [%s](../grafana/%s.json) | %s ([with demo data](figures/dashboards-%s.svg)) |\n", d.Name, d.Name, d.Title, strings.TrimPrefix(d.Name, "joist-"))
	}
	out.WriteString("\n## Alarms\n\nThose with a condition in PromQL are in [alerts.yaml](../grafana/alerts.yaml); those of CloudWatch are made by the CDK app.\n\n" +
		"| alarm | wakes somebody | means | first command | CloudWatch | Prometheus |\n|---|---|---|---|---|---|\n")
	for _, w := range Watches {
		fmt.Fprintf(&out, "| [%s](runbooks/%s) | %s | %s | `%s` | %s | %s |\n", w.Name, path.Base(w.Runbook()), yes(w.Page), w.Means, w.First, where(w), yes(w.Expr != ""))
	}
	out.WriteString("\n## Metrics\n")
	for _, row := range Rows {
		fmt.Fprintf(&out, "\n### %s\n\n| metric | kind, unit | labels | from | dimensions in CloudWatch | what it counts |\n|---|---|---|---|---|---|\n", row.Title)
		for _, panel := range row.Panels {
			for _, m := range panel.drawn() {
				fmt.Fprintf(&out, "| `%s` | %s, %s | %s | %s | %s | %s |\n",
					m.Name, m.Kind, m.Unit, labels(m), strings.Join(m.Services, ", "), strings.Join(m.CloudWatch, ", "), m.Help)
			}
		}
	}
	out.WriteString("\n## Karpenter's metrics\n\nThe names that begin with `karpenter_` above mean what they mean in Karpenter v1.14, so that its dashboards go on working. " +
		"Times are from when Joist saw what happened, which is within a second.\nOf the others:\n\n| Karpenter's | here | why |\n|---|---|---|\n")
	for _, o := range telemetry.Others {
		like := "absent"
		if o.Like != "" {
			like = "similar: `" + o.Like + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", o.Name, like, o.Why)
	}
	return out.Bytes()
}

// where says whether a watch is one of CloudWatch's.
func where(w Watch) string {
	if w.inside {
		return "with `cloudWatchMetrics`"
	}
	return "yes"
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func labels(m telemetry.Metric) string {
	var all []string
	for _, l := range m.Labels {
		all = append(all, "`"+l.Name+"`: "+l.Help)
	}
	return strings.Join(all, "; ")
}
