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

// What is counted of claims, nodes and NodePools, with labels in brackets. Those
// of package tally are documented there.
const (
	ClaimsCreated    = Counted(metrics.Created)
	NodesCreated     = Counted(metrics.Registered)
	Initialized      = Counted(metrics.Initialized)
	ClaimsDisrupted  = Counted(metrics.Disrupted)
	ClaimsTerminated = Counted(metrics.Terminated)
	ClaimTermination = Counted(metrics.ClaimTermination)
	NodesTerminated  = Counted(metrics.NodeTerminated)
	NodeTermination  = Counted(metrics.NodeTermination)
	Overdue          = Counted(metrics.Overdue)
	// SweepsStopped counts the removals that a breaker refused: of an inventory, of messages
	// within ten minutes, or of Nodes without a NodeClaim.
	SweepsStopped Counted = "sweeps-stopped"
	// Usage is what the claims of a NodePool have of a resource [resource, NodePool].
	Usage Counted = "usage"
	// Limit is what they may have of it [resource, NodePool].
	Limit Counted = "limit"
	// Cost is what they were bought for, in US dollars an hour [NodePool].
	Cost Counted = "cost"
)

// tallied is what is remembered to count by.
type tallied struct {
	mu sync.Mutex
	// whys are what claims were deleted for. News is handled beside looks.
	whys map[types.UID]string
	// gauges are those that were told, so that what is no more is told, too.
	gauges map[string][]string
}

// deleted hears of each claim that is deleted.
func (t *tallied) deleted(uid types.UID, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whys == nil {
		t.whys = map[types.UID]string{}
	}
	if _, known := t.whys[uid]; !known {
		t.whys[uid] = why
	}
}

func (t *tallied) why(uid types.UID) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why, ours := t.whys[uid]
	return why, ours
}

// forget drops what was remembered of claims that are no more.
func (t *tallied) forget(before, now map[types.UID]sight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range before {
		if _, still := now[uid]; !still {
			delete(t.whys, uid)
		}
	}
}

// tally counts what happened since the look before. The first look of a leader knows of
// none before, and counts nothing: what is there was counted by another.
func (s *Service) tally(before map[types.UID]sight, w world) {
	if before != nil {
		looks := metrics.Snapshots{Before: sights(before), Now: sights(s.seen), At: s.looked, Why: s.tallied.why}
		for _, c := range looks.CountChanges() {
			s.count(Counted(c.Kind), c.Value, c.Labels...)
			s.narrate(c, cmp.Or(s.seen[c.Claim].claim, before[c.Claim].claim))
		}
		s.tallied.forget(before, s.seen)
		s.stories.forget(before, s.seen, s.looked)
	}
	if w.whole {
		for name := range w.pools {
			// Of a series that begins with 1 an alarm does not see that it rose.
			s.count(Overdue, 0, name)
		}
		s.gauge(gauges(w))
	}
}

// retire forgets what a leader knew: another counts now, and the gauges would stand still.
func (s *Service) retire() {
	s.seen = nil
	s.stories.drop()
	s.gauge(nil)
}

func sights(from map[types.UID]sight) map[types.UID]metrics.ClaimAndNode {
	out := make(map[types.UID]metrics.ClaimAndNode, len(from))
	for uid, s := range from {
		out[uid] = metrics.ClaimAndNode{Claim: s.claim, Node: s.node}
	}
	return out
}

// gauged is what one gauge shows.
type gauged struct {
	labels []string
	value  float64
}

// gauges are what NodePools have, may have, and cost.
func gauges(w world) []gauged {
	var all []gauged
	resources := func(what Counted, pool string, list corev1.ResourceList) {
		for name, q := range list {
			all = append(all, gauged{[]string{string(what), karpenter.MetricResource(name), pool}, q.AsApproximateFloat64()})
		}
	}
	for name, pool := range w.pools {
		resources(Usage, name, pool.Status.Resources)
		resources(Limit, name, corev1.ResourceList(pool.Spec.Limits))
	}
	costs := map[string]float64{}
	for _, c := range w.claims {
		if perHour, known := planning.PriceOf(c); known {
			costs[c.Labels[karpenter.NodePoolLabelKey]] += perHour
		}
	}
	for pool := range w.pools {
		all = append(all, gauged{[]string{string(Cost), pool}, costs[pool]})
	}
	return all
}

// gauge tells these, and that those are no more which were told before and are not
// among them.
func (s *Service) gauge(all []gauged) {
	before := s.tallied.gauges
	s.tallied.gauges = make(map[string][]string, len(all))
	for _, g := range all {
		key := strings.Join(g.labels, "\x00")
		s.tallied.gauges[key] = g.labels
		delete(before, key)
		s.count(Counted(g.labels[0]), g.value, g.labels[1:]...)
	}
	for _, labels := range before {
		s.count(Counted(labels[0]), math.NaN(), slices.Clone(labels[1:])...)
	}
}
