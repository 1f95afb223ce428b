package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/memcluster"
)

const (
	// hour is in which pods are counted, and comeOfAge after how long in peace all of
	// them may move.
	hour, comeOfAge = time.Hour, 64 * time.Minute
	// crowded is how long there are more pods than later.
	crowded = 4 * time.Minute
	// rescaled is how soon a Deployment has as many pods as somebody wants.
	rescaled = time.Minute
)

// rate judges each eviction at the moment at which it took place: consolidation moves no
// more pods of a workload within any hour than its pool allows.
//
// Joist counts by the pods that are there, so that one which somebody does not want any
// more is forgiven: of three that moved, one is gone, and another may move. It is no
// promise which of them goes.
type rate struct {
	// most is how many may move; nought is no bound.
	most int
	// moved are the times at which pods did, and fewer those at which somebody wanted one
	// less, by the workload.
	moved, fewer map[string][]time.Time
}

func newRate(most int) rate {
	return rate{most: most, moved: map[string][]time.Time{}, fewer: map[string][]time.Time{}}
}

// scaled hears of a Deployment that was written.
func (r *rate) scaled(e memcluster.Effect) {
	before, _ := e.Before.(*appsv1.Deployment)
	after, _ := e.After.(*appsv1.Deployment)
	if before == nil || after == nil {
		return
	}
	for range *before.Spec.Replicas - *after.Spec.Replicas {
		r.fewer[e.Key.Name] = append(r.fewer[e.Key.Name], e.At)
	}
}

// removed judges the removal of a pod by lifecycle from the node of a claim.
func (r *rate) removed(c *checker, e memcluster.Effect, pod *corev1.Pod, claim *karpenter.NodeClaim) {
	p, acts := acting(claim)
	if r.most == 0 || !acts || p.Reason != "Underutilized" && p.Reason != "Empty" {
		return
	}
	app := pod.Labels["app"]
	r.moved[app] = append(r.moved[app], e.At)
	c.sagas.begun["moved under a rate"]++
	moved, fewer := since(r.moved[app], e.At.Add(-hour)), since(r.fewer[app], e.At.Add(-hour-rescaled))
	if moved == r.most {
		c.sagas.begun["as many as may move"]++
	}
	if moved > r.most+fewer {
		c.violate("no workload is moved too often", "%s removed %s, the %dth pod of %s that consolidation moved within an hour, and %d may; %d less were wanted meanwhile",
			e.Actor, e.Key, moved, app, r.most, fewer)
	}
}

// since counts the times that are later than one.
func since(times []time.Time, than time.Time) int {
	n := 0
	for _, at := range times {
		if at.After(than) {
			n++
		}
	}
	return n
}

// age lets the pods come of age in peace, where their age matters. There were more of
// them at first, so that nodes have room to spare, and none of it is consolidated yet.
func (s *sim) age(ctx context.Context) error {
	if s.asks.evictions == 0 {
		return nil
	}
	s.chaos.next = s.world.Now().Add(comeOfAge)
	for _, phase := range []struct {
		half int32
		last time.Duration
	}{{1, crowded}, {0, comeOfAge - crowded}} {
		for _, name := range slices.Sorted(maps.Keys(s.full)) {
			if err := scale(s.world, name, s.full[name]+phase.half*s.full[name]/2); err != nil {
				return err
			}
		}
		if err := s.until(ctx, phase.last, func() bool { return len(s.checker.found) > 0 }); err != nil {
			return err
		}
	}
	s.world.Kube.Change(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(30 * time.Second)
	})
	return nil
}
