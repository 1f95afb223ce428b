package lifecyclepass

import (
	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"sigs.k8s.io/karpenter/pkg/metrics"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// counters and durations are Karpenter's metrics by name, which the specs read.
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
)

// UseCounter registers a counter of Karpenter, by its name.
func UseCounter(name string, m opmetrics.CounterMetric) { counters[name] = m }

// UseDuration registers a histogram or summary of Karpenter, by its name.
func UseDuration(name string, m opmetrics.ObservationMetric) { durations[name] = m }

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
}
