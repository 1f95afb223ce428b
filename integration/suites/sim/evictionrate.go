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
	// rateWindow is in which pods are counted.
	rateWindow = time.Hour
	// extraPodsTime is how long there are more pods than later.
	extraPodsTime = 4 * time.Minute
	// agingTime is after how long in peace all pods may move. A pod may be created just before the extra ones are removed,
	// and ages have a resolution of one second.
	agingTime = extraPodsTime + rateWindow + 2*time.Second
)

// evictionRate checks that consolidation evicts at most the allowed number of pods of a workload per hour. Joist
// counts pods by their age, so a young pod that scaling removes no longer counts.
type evictionRate struct {
	// limit is the number of pods per hour; 0 is no limit.
	limit int
	// movedAt are the times of evictions, by workload. unwantedAt are the creation times of pods that scaling
	// removed.
	movedAt, unwantedAt map[string][]time.Time
}

func newEvictionRate(most int) evictionRate {
	return evictionRate{limit: most, movedAt: map[string][]time.Time{}, unwantedAt: map[string][]time.Time{}}
}

// recordUnwanted records a pod that the ReplicaSet controller deleted.
func (r *evictionRate) recordUnwanted(pod *corev1.Pod) {
	app := pod.Labels["app"]
	r.unwantedAt[app] = append(r.unwantedAt[app], pod.CreationTimestamp.Time)
}

// recordScaling records pods that were evicted and are not replaced because the Deployment was scaled down.
func (r *evictionRate) recordScaling(e memcluster.Effect, pods map[cluster.Key]*corev1.Pod) {
	before, _ := e.Before.(*appsv1.Deployment)
	after, _ := e.After.(*appsv1.Deployment)
	if before == nil || after == nil {
		return
	}
	lacks := int(*before.Spec.Replicas)
	for _, pod := range pods {
		if pod.Labels["app"] == e.Key.Name && mustBeDrained(pod) {
			lacks--
		}
	}
	for range min(lacks, int(*before.Spec.Replicas-*after.Spec.Replicas)) {
		r.unwantedAt[e.Key.Name] = append(r.unwantedAt[e.Key.Name], e.At)
	}
}

// countForgiven returns how many pods of a workload may have moved in the last hour and no longer count. A pod's
// age has a resolution of one second.
func (r *evictionRate) countForgiven(app string, at time.Time) int {
	return countAfter(r.unwantedAt[app], at.Add(-rateWindow-time.Second))
}

// checkEviction checks the eviction of a pod by lifecycle from the node of a NodeClaim.
func (r *evictionRate) checkEviction(c *checker, e memcluster.Effect, pod *corev1.Pod, claim *karpenter.NodeClaim) {
	p, acts := confirmedProposal(claim)
	if r.limit == 0 || !acts || p.Reason != "Underutilized" && p.Reason != "Empty" {
		return
	}
	app := pod.Labels["app"]
	r.movedAt[app] = append(r.movedAt[app], e.At)
	c.occurrences["moved under an eviction rate"]++
	moved, lost := countAfter(r.movedAt[app], c.clocks.readClock(e.Actor, e.At).Add(-rateWindow)), r.countForgiven(app, e.At)
	if moved == r.limit && lost == 0 {
		c.occurrences["eviction rate reached"]++
	}
	if moved > r.limit+lost {
		c.reportViolation("the eviction rate is respected", "%s evicted %s, the %dth pod of %s in an hour; the limit is %d, and %d young pods were scaled down",
			e.Actor, e.Key, moved, app, r.limit, lost)
	}
}

// countAfter returns the number of times after the given one.
func countAfter(times []time.Time, than time.Time) int {
	n := 0
	for _, at := range times {
		if at.After(than) {
			n++
		}
	}
	return n
}

// agePods runs the cluster without faults until all pods may be moved. Extra pods at the start leave nodes with
// free capacity.
func (s *sim) agePods(ctx context.Context) error {
	if s.settings.evictionsPerHour == 0 {
		return nil
	}
	s.chaos.nextAction = s.world.Now().Add(agingTime)
	for _, phase := range []struct {
		half int32
		last time.Duration
	}{{1, extraPodsTime}, {0, agingTime - extraPodsTime}} {
		for _, name := range slices.Sorted(maps.Keys(s.finalSizes)) {
			if err := scaleDeployment(s.world, name, s.finalSizes[name]+phase.half*s.finalSizes[name]/2); err != nil {
				return err
			}
		}
		if err := s.advanceUntil(ctx, phase.last, func() bool { return len(s.checker.violations) > 0 }); err != nil {
			return err
		}
	}
	for name := range s.finalSizes {
		if n := s.checker.rate.countForgiven(name, s.world.Now()); n > 0 {
			s.checker.reportViolation("models return no errors", "%d pods of %s count as moved, though none could move yet", n, name)
		}
	}
	for _, pool := range s.listObjects(cluster.NodePools) {
		s.world.Kube.ChangeObject(cluster.NodePools, cluster.KeyOf(pool), func(o cluster.Object) {
			o.(*karpenter.NodePool).Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(30 * time.Second)
		})
	}
	return nil
}
