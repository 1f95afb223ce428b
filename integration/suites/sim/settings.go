package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// seedSettings are the settings of the NodePool and the attacks that differ between seeds. They have a random
// source of their own, so that adding a setting does not change other seeds.
type seedSettings struct {
	// poolPrice and clusterPrice are price limits in US dollars per hour; nil is no limit.
	poolPrice, clusterPrice *float64
	// budgets are those of the NodePool; nil allows all nodes at once.
	budgets []karpenter.Budget
	// driftTimes are when the NodePool's template changes, since the start.
	driftTimes []time.Duration
	// evictionsPerHour is how many pods of a workload consolidation may evict per hour; 0 is no limit. In such a
	// seed all pods are older than an hour when the faults begin, because younger pods are not moved.
	evictionsPerHour int
	// cpuLimit is the NodePool's CPU limit; 0 is more than all pods need. strictLimits counts nodes until they are
	// deleted.
	cpuLimit     int64
	strictLimits bool
	// corruptsClaim is whether a user makes a NodeClaim impossible to bind after the faults.
	corruptsClaim bool
	// forgesRequest is whether a termination request is forged after the faults.
	forgesRequest bool
	// nodeParts are the sizes in which nodes are stored; zero means the default, with which no seed has a part.
	nodeParts watcher.NodePartSizes
}

func newSeedSettings(seed int64) seedSettings {
	dice := rand.New(rand.NewPCG(uint64(seed), 0x76617279)) //nolint:gosec // a seeded source: a run must be repeatable
	var v seedSettings
	limits := []float64{0.09, 0.12, 0.15} // Without a limit the pods cost 0.11 to 0.24.
	if dice.IntN(3) == 0 {
		v.poolPrice = new(limits[dice.IntN(len(limits))])
	}
	if dice.IntN(4) == 0 {
		v.clusterPrice = new(limits[dice.IntN(len(limits))])
	}
	if dice.IntN(2) == 0 {
		v.budgets = []karpenter.Budget{{Nodes: "2"}, {Nodes: "1", Reasons: []karpenter.DisruptionReason{karpenter.DisruptionReasonDrifted}}}
	}
	if dice.IntN(3) == 0 {
		v.driftTimes = []time.Duration{time.Duration(45+dice.IntN(90)) * time.Second}
	}
	if dice.IntN(8) == 0 {
		v.evictionsPerHour = 1 + dice.IntN(2)
		for i := range v.driftTimes {
			v.driftTimes[i] += agingTime
		}
	}
	if dice.IntN(2) == 0 {
		v.cpuLimit = 12 // All pods need ten.
	}
	v.strictLimits = dice.IntN(3) == 0
	// An instance that is started by hand exceeds price limits.
	v.corruptsClaim = dice.IntN(2) == 0 && v.poolPrice == nil && v.clusterPrice == nil
	v.forgesRequest = dice.IntN(4) == 0
	if dice.IntN(2) == 0 {
		v.nodeParts = watcher.NodePartSizes{Inline: 1 + dice.IntN(2), Part: 1 + dice.IntN(3)}
	}
	return v
}

// applyTo writes the settings to the NodePool.
func (v seedSettings) applyTo(pool *karpenter.NodePool) {
	pool.Annotations = map[string]string{}
	if v.poolPrice != nil {
		pool.Annotations["joist.sh/price-limit"] = fmt.Sprint(*v.poolPrice)
	}
	if v.strictLimits {
		pool.Annotations["joist.sh/limits"] = "strict"
	}
	if v.cpuLimit > 0 {
		pool.Spec.Limits[corev1.ResourceCPU] = *resource.NewQuantity(v.cpuLimit, resource.DecimalSI)
	}
	if v.evictionsPerHour > 0 {
		pool.Annotations["joist.sh/consolidation-evictions-per-hour"] = strconv.Itoa(v.evictionsPerHour)
		pool.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{}
	}
	if v.budgets != nil {
		pool.Spec.Disruption.Budgets = v.budgets
	}
}

// maxNodes returns how many nodes may be disrupted at once for each reason; nil is no limit.
func (v seedSettings) maxNodes() map[string]int {
	if v.budgets == nil {
		return nil
	}
	return map[string]int{"Empty": 2, "Underutilized": 2, "Drifted": 1, "Unhealthy": 2}
}

// applyDrift changes the NodePool's template at the planned times.
func (s *sim) applyDrift() {
	for len(s.settings.driftTimes) > 0 && s.world.Now().Sub(s.world.Start) >= s.settings.driftTimes[0] {
		s.settings.driftTimes = s.settings.driftTimes[1:]
		s.faults["action drift"]++
		for _, name := range []string{"default", bookedWorkload} {
			s.world.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: name}, func(o cluster.Object) {
				pool := o.(*karpenter.NodePool)
				pool.Spec.Template.Labels = map[string]string{"example.com/round": strconv.Itoa(len(s.settings.driftTimes) + 1)}
			})
		}
	}
}
