package lifecycle

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/metrics"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// metricState is the state from which metrics are derived.
type metricState struct {
	mu sync.Mutex
	// deletionReasons are why claims were deleted. Messages are handled concurrently with
	// reconciles.
	deletionReasons map[types.UID]string
	// gauges are the published series, so that series that end are published as NaN.
	gauges map[string]gaugeValue
	// userData is the size of the user data in the last verified launch of each EC2NodeClass, in
	// bytes.
	userData map[string]int
}

// recordUserData records the size of the largest user data of a launch.
func (t *metricState) recordUserData(intent launchspec.Intent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.userData == nil {
		t.userData = map[string]int{}
	}
	size := 0
	for i := range intent.Templates {
		size = max(size, len(intent.Templates[i].UserData))
	}
	t.userData[intent.NodeClass] = size
}

// recordDeletion records why a claim is deleted; the first reason wins.
func (t *metricState) recordDeletion(uid types.UID, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deletionReasons == nil {
		t.deletionReasons = map[types.UID]string{}
	}
	if _, known := t.deletionReasons[uid]; !known {
		t.deletionReasons[uid] = why
	}
}

func (t *metricState) deletionReason(uid types.UID) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why, ours := t.deletionReasons[uid]
	return why, ours
}

// removeMissing drops the reasons of claims that no longer exist.
func (t *metricState) removeMissing(before, now map[types.UID]claimSnapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range before {
		if _, still := now[uid]; !still {
			delete(t.deletionReasons, uid)
		}
	}
}

// clear drops the reasons and the sizes. The gauges end when publishGauges publishes none.
func (t *metricState) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deletionReasons, t.userData = nil, nil
}

// countChanges counts the changes since the last reconcile. The first reconcile of a leader counts
// nothing, because the previous leader counted the existing objects.
func (s *Service) countChanges(before map[types.UID]claimSnapshot, w clusterState) {
	if before == nil {
		return
	}
	looks := metrics.Snapshots{Before: claimsAndNodes(before), Now: claimsAndNodes(s.lastSeen), At: s.lastReconcile, Why: s.metricState.deletionReason,
		Pool: func(name string) *karpenter.NodePool { return w.pools[name] }, Moving: w.countMovingPods}
	for _, c := range looks.CountChanges() {
		s.Metrics.Record(c.Metric, c.Value, c.Labels...)
		s.recordSpan(c, cmp.Or(s.lastSeen[c.Claim].claim, before[c.Claim].claim))
	}
	s.metricState.removeMissing(before, s.lastSeen)
	s.traces.removeMissing(before, s.lastSeen, s.lastReconcile)
}

// measureCluster publishes the gauges.
func (s *Service) measureCluster(w clusterState) {
	for name := range w.pools {
		// An alarm does not detect an increase of a series that begins with 1.
		s.Metrics.Record(metric.DrainsOverdue, 0, name)
	}
	s.publishGauges(slices.Concat(collectGauges(w), s.collectBudgetGauges(w), s.collectUserDataGauges(w), s.collectDeletionCostGauges()))
}

// stopLeading drops what this replica learned as the leader, when another replica leads. It may lead again hours later, and must then know as
// little as a new process: gauges end, the next admission lists the claims, pod events are read from the pods, no rejected removal is due
// on a standby replica, drift waits for an inventory, and terminations wait for a report of zonal shifts.
//
// These fields stay:
//   - throttle, publisher, orphanBreaker and goneBreaker record when something was done. Each entry ends with its interval, and until
//     then it only delays or forbids a repetition.
//   - claimSearches, removals in flight and executor have requests that end by themselves. The executor checks the Leases.
//   - effects, turns and claimOffset are counters.
//   - lastReconcile and lastFullReconcile are times, so the next reconcile is a full one. liveReadErrors are of one reconcile, and reservation is of one turn.
func (s *Service) stopLeading() {
	s.counted.forget()
	s.lastSeen, s.settled = nil, settledState{}
	s.deletionCosts = deletionCostState{}
	s.traces.clear()
	clear(s.podTrackers)
	s.evictions.Forget()
	s.deletions.Forget()
	s.drift.clear()
	s.shifts = nil
	s.metricState.clear()
	s.publishGauges(nil)
}

func claimsAndNodes(from map[types.UID]claimSnapshot) map[types.UID]metrics.ClaimAndNode {
	out := make(map[types.UID]metrics.ClaimAndNode, len(from))
	for uid, s := range from {
		out[uid] = metrics.ClaimAndNode{Claim: s.claim, Node: s.node}
	}
	return out
}

// gaugeValue is the value of one gauge series.
type gaugeValue struct {
	metric metric.Metric
	labels []string
	value  float64
}

// collectGauges returns usage, limits and cost of the NodePools.
func collectGauges(w clusterState) []gaugeValue {
	var all []gaugeValue
	resources := func(m metric.Metric, pool string, list corev1.ResourceList) {
		for name, q := range list {
			all = append(all, gaugeValue{m, []string{karpenter.MetricResource(name), pool}, q.AsApproximateFloat64()})
		}
	}
	for name, pool := range w.pools {
		resources(metric.PoolUsage, name, pool.Status.Resources)
		resources(metric.PoolLimit, name, corev1.ResourceList(pool.Spec.Limits))
	}
	costs := map[string]float64{}
	for _, c := range w.claims {
		if perHour, known := planning.ReadPrice(c); known {
			costs[c.Labels[karpenter.NodePoolLabelKey]] += perHour
		}
	}
	for pool := range w.pools {
		all = append(all, gaugeValue{metric.PoolCost, []string{pool}, costs[pool]})
	}
	return all
}

// budgetReasons are the reasons for which NodePools have budgets.
var budgetReasons = []karpenter.DisruptionReason{karpenter.DisruptionReasonUnderutilized, karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted}

// collectBudgetGauges returns what the budgets of the NodePools allow, and how much of it is used.
func (s *Service) collectBudgetGauges(w clusterState) []gaugeValue {
	counted := w.countBudgets()
	var all []gaugeValue
	reasons := budgetReasons
	if s.Repair != nil {
		reasons = append(slices.Clip(reasons), karpenter.DisruptionReasonUnhealthy)
	}
	for _, pool := range w.pools {
		for _, reason := range reasons {
			allowed, consumed := counted.MeasureUse(pool, reason, s.lastReconcile)
			labels := []string{pool.Name, reason.Label()}
			all = append(all, gaugeValue{metric.PoolAllowedDisruptions, labels, float64(min(allowed, math.MaxInt32))}, gaugeValue{metric.PoolConsumedBudgets, labels, float64(consumed)})
		}
	}
	return all
}

// collectUserDataGauges returns the sizes of user data of the EC2NodeClasses that exist.
func (s *Service) collectUserDataGauges(w clusterState) []gaugeValue {
	s.metricState.mu.Lock()
	defer s.metricState.mu.Unlock()
	var all []gaugeValue
	for class, size := range s.metricState.userData {
		if w.classes[class] == nil {
			delete(s.metricState.userData, class)
			continue
		}
		all = append(all, gaugeValue{metric.UserDataSize, []string{class}, float64(size)})
	}
	return all
}

// collectDeletionCostGauges returns the nodes with a write in the last ranking of deletion costs.
func (s *Service) collectDeletionCostGauges() []gaugeValue {
	var all []gaugeValue
	for pool, nodes := range s.deletionCosts.nodes {
		all = append(all, gaugeValue{metric.DeletionCostNodes, []string{pool}, float64(nodes)})
	}
	return all
}

// publishGauges publishes the values, and NaN for series that were published before and no longer
// exist.
func (s *Service) publishGauges(all []gaugeValue) {
	before := s.metricState.gauges
	s.metricState.gauges = make(map[string]gaugeValue, len(all))
	for _, g := range all {
		key := strings.Join(append([]string{g.metric.Name}, g.labels...), "\x00")
		s.metricState.gauges[key] = g
		delete(before, key)
		s.Metrics.Record(g.metric, g.value, g.labels...)
	}
	for _, g := range before {
		s.Metrics.Record(g.metric, math.NaN(), g.labels...)
	}
}
