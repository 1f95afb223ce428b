package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// hour is in which pods are counted, and comeOfAge after how long in peace all of
	// them may move.
	hour, comeOfAge = time.Hour, 64 * time.Minute
	// crowded is how long there are more pods than later.
	crowded = 4 * time.Minute
)

// rate judges each eviction at the moment at which it took place: consolidation moves no
// more pods of a workload within any hour than its pool allows.
//
// Joist counts by the pods that are there, so that a young one which somebody does not
// want any more is forgiven: of three that moved, what came instead of one is gone, and
// another may move.
type rate struct {
	// most is how many may move; nought is no bound.
	most int
	// moved are the times at which pods did, and lost those at which pods came to be, or
	// would have, that nobody wants any more, by the workload.
	moved, lost map[string][]time.Time
}

func newRate(most int) rate {
	return rate{most: most, moved: map[string][]time.Time{}, lost: map[string][]time.Time{}}
}

// unwanted hears of a pod that goes because somebody wants fewer.
func (r *rate) unwanted(pod *corev1.Pod) {
	app := pod.Labels["app"]
	r.lost[app] = append(r.lost[app], pod.CreationTimestamp.Time)
}

// scaled hears of a Deployment that was written. What has just been evicted may not have
// been replaced yet, and is not if fewer are wanted.
func (r *rate) scaled(e memcluster.Effect, pods map[cluster.Key]*corev1.Pod) {
	before, _ := e.Before.(*appsv1.Deployment)
	after, _ := e.After.(*appsv1.Deployment)
	if before == nil || after == nil {
		return
	}
	lacks := int(*before.Spec.Replicas)
	for _, pod := range pods {
		if pod.Labels["app"] == e.Key.Name && remains(pod) {
			lacks--
		}
	}
	for range min(lacks, int(*before.Spec.Replicas-*after.Spec.Replicas)) {
		r.lost[e.Key.Name] = append(r.lost[e.Key.Name], e.At)
	}
}

// forgiven is how many pods of a workload may have moved in the hour before a moment and
// do not count any more. A pod's age is in whole seconds.
func (r *rate) forgiven(app string, at time.Time) int {
	return since(r.lost[app], at.Add(-hour-time.Second))
}

// removed judges the removal of a pod by lifecycle from the node of a claim.
func (r *rate) removed(c *checker, e memcluster.Effect, pod *corev1.Pod, claim *karpenter.NodeClaim) {
	p, acts := acting(claim)
	if r.most == 0 || !acts || p.Reason != "Underutilized" && p.Reason != "Empty" {
		return
	}
	app := pod.Labels["app"]
	r.moved[app] = append(r.moved[app], e.At)
	c.reached["moved under a rate"]++
	moved, lost := since(r.moved[app], e.At.Add(-hour)), r.forgiven(app, e.At)
	if moved == r.most && lost == 0 {
		c.reached["as many as may move"]++
	}
	if moved > r.most+lost {
		c.violate("no workload is moved too often", "%s removed %s, the %dth pod of %s that consolidation moved within an hour, and %d may; %d young ones were not wanted any more",
			e.Actor, e.Key, moved, app, r.most, lost)
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
	for name := range s.full {
		if n := s.checker.rate.forgiven(name, s.world.Now()); n > 0 {
			s.checker.violate("models work", "%d pods of %s that nobody wants are as young as if they had moved, though nothing could move yet", n, name)
		}
	}
	s.world.Kube.Change(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(30 * time.Second)
	})
	return nil
}
