package lifecyclepass

import (
	"math"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"sigs.k8s.io/karpenter/pkg/metrics"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// counters, durations and gauges are Karpenter's metrics by name, which the specs read.
var (
	counters = map[string]opmetrics.CounterMetric{
		"karpenter_nodeclaims_created_total":        metrics.NodeClaimsCreatedTotal,
		"karpenter_nodeclaims_terminated_total":     metrics.NodeClaimsTerminatedTotal,
		"karpenter_nodeclaims_disrupted_total":      metrics.NodeClaimsDisruptedTotal,
		"karpenter_nodes_created_total":             metrics.NodesCreatedTotal,
		"karpenter_nodes_terminated_total":          metrics.NodesTerminatedTotal,
		"karpenter_pods_disruption_initiated_total": metrics.PodsDisruptionInitiatedTotal,
	}
	durations = map[string]opmetrics.ObservationMetric{}
	gauges    = map[string]opmetrics.GaugeMetric{}
)

// UseCounter registers a counter of Karpenter, by its name.
func UseCounter(name string, m opmetrics.CounterMetric) { counters[name] = m }

// UseDuration registers a histogram or summary of Karpenter, by its name.
func UseDuration(name string, m opmetrics.ObservationMetric) { durations[name] = m }

// UseGauge registers a gauge of Karpenter, by its name.
func UseGauge(name string, m opmetrics.GaugeMetric) { gauges[name] = m }

// recordMetric records a metric of Joist under the same name in Karpenter's registry.
func recordMetric(m metric.Metric, value float64, values ...string) {
	labels := map[string]string{}
	for i, label := range m.Labels {
		labels[label.Name] = values[i]
	}
	if c := counters[m.Name]; c != nil {
		c.Add(value, labels)
	}
	if d := durations[m.Name]; d != nil {
		d.Observe(value, labels)
	}
	switch g := gauges[m.Name]; {
	case g == nil:
	case math.IsNaN(value): // The series no longer exists.
		g.Delete(labels)
	default:
		g.Set(value, labels)
	}
}
