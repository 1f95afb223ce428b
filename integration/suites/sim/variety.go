package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// variety is what people ask for in one seed and not in another. It has dice of its own,
// so that a seed that asks for nothing is what it was.
type variety struct {
	// pool and cluster are price limits, in US dollars an hour; nil is none.
	pool, cluster *float64
	// budgets are the pool's; nil lets all nodes go at once.
	budgets []karpenter.Budget
	// drifts are when the pool's template changes, in the time since the beginning.
	drifts []time.Duration
	// evictions is how many pods of a workload consolidation may move within an hour;
	// nought is any number. All pods of such a seed have run for longer than that when
	// things begin to go wrong: others are not moved at all.
	evictions int
	// cores is the pool's limit of CPUs; nought is more than all pods need. Strict says that
	// nodes count until they are gone.
	cores  int64
	strict bool
	// spoils says that a person edits a claim so that it cannot be bound, once nothing
	// else goes wrong any more.
	spoils bool
	// forges says that a request to end an instance is forged, once nothing else goes wrong any
	// more.
	forges bool
}

func newVariety(seed int64) variety {
	dice := rand.New(rand.NewPCG(uint64(seed), 0x76617279)) //nolint:gosec // a seeded source: a run must be repeatable
	var v variety
	limits := []float64{0.09, 0.12, 0.15} // Without one the pods come to 0.11 to 0.24.
	if dice.IntN(3) == 0 {
		v.pool = new(limits[dice.IntN(len(limits))])
	}
	if dice.IntN(4) == 0 {
		v.cluster = new(limits[dice.IntN(len(limits))])
	}
	if dice.IntN(2) == 0 {
		v.budgets = []karpenter.Budget{{Nodes: "2"}, {Nodes: "1", Reasons: []karpenter.DisruptionReason{karpenter.DisruptionReasonDrifted}}}
	}
	if dice.IntN(3) == 0 {
		v.drifts = []time.Duration{time.Duration(45+dice.IntN(90)) * time.Second}
	}
	if dice.IntN(8) == 0 {
		v.evictions = 1 + dice.IntN(2)
		for i := range v.drifts {
			v.drifts[i] += comeOfAge
		}
	}
	if dice.IntN(2) == 0 {
		v.cores = 12 // All pods need ten.
	}
	v.strict = dice.IntN(3) == 0
	// An instance that is started by hand costs money beside every limit.
	v.spoils = dice.IntN(2) == 0 && v.pool == nil && v.cluster == nil
	v.forges = dice.IntN(4) == 0
	return v
}

// ask writes it on the pool.
func (v variety) ask(pool *karpenter.NodePool) {
	pool.Annotations = map[string]string{}
	if v.pool != nil {
		pool.Annotations["joist.sh/price-limit"] = fmt.Sprint(*v.pool)
	}
	if v.strict {
		pool.Annotations["joist.sh/limits"] = "strict"
	}
	if v.cores > 0 {
		pool.Spec.Limits[corev1.ResourceCPU] = *resource.NewQuantity(v.cores, resource.DecimalSI)
	}
	if v.evictions > 0 {
		pool.Annotations["joist.sh/consolidation-evictions-per-hour"] = strconv.Itoa(v.evictions)
		pool.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{}
	}
	if v.budgets != nil {
		pool.Spec.Disruption.Budgets = v.budgets
	}
}

// allowed is how many nodes may go at once for each reason; nil where all may.
func (v variety) allowed() map[string]int {
	if v.budgets == nil {
		return nil
	}
	return map[string]int{"Empty": 2, "Underutilized": 2, "Drifted": 1}
}

// vary changes what is due by now.
func (s *sim) vary() {
	for len(s.asks.drifts) > 0 && s.world.Now().Sub(s.world.Start) >= s.asks.drifts[0] {
		s.asks.drifts = s.asks.drifts[1:]
		s.faults["deed drift"]++
		s.world.Kube.Change(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
			pool := o.(*karpenter.NodePool)
			pool.Spec.Template.Labels = map[string]string{"example.com/round": strconv.Itoa(len(s.asks.drifts) + 1)}
		})
	}
}
