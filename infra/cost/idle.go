package cost

// idleMetric is a custom metric that a cluster sends in which nothing happens, with how
// many sets of values its dimensions have there. A metric that counted nothing is not
// sent, and CloudWatch bills a metric only for the hours in which it is sent.
type idleMetric struct {
	name string
	// outside are those of functions, inside those of watcher and lifecycle.
	outside, inside float64
}

// idleMetrics are those of ticks, inventories and node classes, which the catalog,
// interruption and the launcher handle and delete; and inside of the cluster those of
// each reconcile of watcher and lifecycle, of lifecycle's inbox, and of one NodePool.
var idleMetrics = []idleMetric{
	{"joist_events_handled_total", 3, 1},
	{"joist_token_wait_seconds", 1, 0},
	{"joist_step_seconds", 0, 2},
	{"joist_pods_waiting", 0, 1},
	{"karpenter_nodepools_cost_total", 0, 1},
}

// countIdleSeries counts them.
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
