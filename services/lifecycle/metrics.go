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
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Metrics of claims, nodes and NodePools, with labels in brackets. The metrics of package metrics are
// documented there.
const (
	ClaimsCreated    = MetricName(metrics.Created)
	NodesCreated     = MetricName(metrics.Registered)
	Initialized      = MetricName(metrics.Initialized)
	ClaimsDisrupted  = MetricName(metrics.Disrupted)
	ClaimsTerminated = MetricName(metrics.Terminated)
	ClaimTermination = MetricName(metrics.ClaimTermination)
	NodesTerminated  = MetricName(metrics.NodeTerminated)
	NodeTermination  = MetricName(metrics.NodeTermination)
	Overdue          = MetricName(metrics.Overdue)
	// GarbageCollectionStopped counts the removals that a breaker rejected: of an inventory, of
	// messages within ten minutes, or of Nodes without a NodeClaim.
	GarbageCollectionStopped MetricName = "sweeps-stopped"
	// Usage is the NodePool's usage of a resource [resource, NodePool].
	Usage MetricName = "usage"
	// Limit is the NodePool's limit of a resource [resource, NodePool].
	Limit MetricName = "limit"
	// Cost is the price of the NodePool's claims, in US dollars per hour [NodePool].
	Cost MetricName = "cost"
)

// metricState is the state from which metrics are derived.
type metricState struct {
	mu sync.Mutex
	// deletionReasons are why claims were deleted. Messages are handled concurrently with
	// reconciles.
	deletionReasons map[types.UID]string
	// gauges are the published series, so that series that end are published as NaN.
	gauges map[string][]string
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

// countChanges counts the changes since the last reconcile. The first reconcile of a leader counts
// nothing, because the previous leader counted the existing objects.
func (s *Service) countChanges(before map[types.UID]claimSnapshot, w clusterState) {
	if before != nil {
		looks := metrics.Snapshots{Before: claimsAndNodes(before), Now: claimsAndNodes(s.lastSeen), At: s.lastReconcile, Why: s.metricState.deletionReason}
		for _, c := range looks.CountChanges() {
			s.emitMetric(MetricName(c.Kind), c.Value, c.Labels...)
			s.recordSpan(c, cmp.Or(s.lastSeen[c.Claim].claim, before[c.Claim].claim))
		}
		s.metricState.removeMissing(before, s.lastSeen)
		s.traces.removeMissing(before, s.lastSeen, s.lastReconcile)
	}
	if w.isFull {
		for name := range w.pools {
			// An alarm does not detect an increase of a series that begins with 1.
			s.emitMetric(Overdue, 0, name)
		}
		s.publishGauges(collectGauges(w))
	}
}

// stopLeading drops the metric state when another replica leads, so that gauges do not keep their
// last value.
func (s *Service) stopLeading() {
	s.lastSeen = nil
	s.traces.clear()
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
	labels []string
	value  float64
}

// collectGauges returns usage, limits and cost of the NodePools.
func collectGauges(w clusterState) []gaugeValue {
	var all []gaugeValue
	resources := func(what MetricName, pool string, list corev1.ResourceList) {
		for name, q := range list {
			all = append(all, gaugeValue{[]string{string(what), karpenter.MetricResource(name), pool}, q.AsApproximateFloat64()})
		}
	}
	for name, pool := range w.pools {
		resources(Usage, name, pool.Status.Resources)
		resources(Limit, name, corev1.ResourceList(pool.Spec.Limits))
	}
	costs := map[string]float64{}
	for _, c := range w.claims {
		if perHour, known := planning.ReadPrice(c); known {
			costs[c.Labels[karpenter.NodePoolLabelKey]] += perHour
		}
	}
	for pool := range w.pools {
		all = append(all, gaugeValue{[]string{string(Cost), pool}, costs[pool]})
	}
	return all
}

// publishGauges publishes the values, and NaN for series that were published before and no longer
// exist.
func (s *Service) publishGauges(all []gaugeValue) {
	before := s.metricState.gauges
	s.metricState.gauges = make(map[string][]string, len(all))
	for _, g := range all {
		key := strings.Join(g.labels, "\x00")
		s.metricState.gauges[key] = g.labels
		delete(before, key)
		s.emitMetric(MetricName(g.labels[0]), g.value, g.labels[1:]...)
	}
	for _, labels := range before {
		s.emitMetric(MetricName(labels[0]), math.NaN(), slices.Clone(labels[1:])...)
	}
}
