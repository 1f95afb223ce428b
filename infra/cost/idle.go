package cost

// idleMetric is a custom metric of an idle cluster, with its number of combinations of
// dimension values. Metrics without a change are not sent, and CloudWatch bills a metric only
// for the hours in which it is sent.
type idleMetric struct {
	name string
	// outside counts those of functions, inside those of watcher and lifecycle.
	outside, inside float64
}

// idleMetrics are the metrics of handling ticks, inventories and node classes, of each
// reconcile of watcher and lifecycle, of lifecycle's inbox, and of one NodePool.
var idleMetrics = []idleMetric{
	{"joist_events_handled_total", 3, 1},
	{"joist_token_wait_seconds", 1, 0},
	{"joist_reconcile_seconds", 0, 2},
	{"joist_pods_waiting", 0, 1},
	{"karpenter_nodepools_cost_total", 0, 1},
}

// countIdleSeries returns the number of series of idleMetrics.
func countIdleSeries(inside bool) float64 {
	count := 0.0
	for _, m := range idleMetrics {
		if inside {
			count += m.inside
		} else {
			count += m.outside
		}
	}
	return count
}
