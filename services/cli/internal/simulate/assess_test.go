package simulate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// assessOptions returns options with disruption's decision.
func assessOptions(now func() time.Time) ConsolidateOptions {
	return ConsolidateOptions{
		Now: now, Progress: func(int, *scenario.Consolidation) {},
		Decide: func(s planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
			return disruption.Evaluate(s, stock, disruption.Options{})
		},
	}
}

func randomSource(seed uint64) Source {
	s := planningtest.GenerateCluster(rand.New(rand.NewPCG(seed, 2)), 12, 50)
	for i := range s.NodePools {
		s.NodePools[i].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
	}
	return SourceFromCatalogue(s, planningtest.NewCatalogue())
}

// TestBoundHolds: no consolidation of a cluster whose nodes are all managed costs less than the bound,
// and the costs are consistent.
func TestBoundHolds(t *testing.T) {
	known := 0
	for seed := range uint64(4) {
		from := randomSource(seed)
		from.Snapshot.Nodes = slices.DeleteFunc(from.Snapshot.Nodes, func(n planning.Node) bool { return n.Claim == "" })
		bound := from.Fleet().lowerBound()
		a, err := Assess(from, assessOptions(func() time.Time { return planningtest.Now }))
		if err != nil {
			t.Fatal(err)
		}
		if bound > a.Result.CostAfter+costTolerance {
			t.Errorf("seed %d: the bound is $%.4f, and the consolidated cluster costs $%.4f", seed, bound, a.Result.CostAfter)
		}
		if a.Bound > 0 {
			known++
		}
		sum := 0.0
		for _, n := range a.After {
			sum += n.Price
		}
		if a.Result.CostAfter > a.Before+costTolerance || sum > a.Result.CostAfter+1e-6 || sum < a.Result.CostAfter-1e-6 {
			t.Errorf("seed %d: before $%.4f, after $%.4f, sum of nodes $%.4f", seed, a.Before, a.Result.CostAfter, sum)
		}
	}
	if known == 0 {
		t.Error("no cluster has a bound")
	}
}

// TestObstacles: each obstacle keeps nodes, and the saving without it is that of a cluster without it.
func TestObstacles(t *testing.T) {
	free := randomSource(2)
	options := assessOptions(func() time.Time { return planningtest.Now })
	want, err := Assess(free, options)
	if err != nil {
		t.Fatal(err)
	}
	if want.Before-want.Result.CostAfter <= 0 {
		t.Fatal("the cluster cannot be consolidated")
	}
	for name, block := range map[string]func(*planning.Snapshot){
		ObstaclePodBudgets: func(s *planning.Snapshot) {
			changePods(s, func(c *planning.PodClass) {
				c.Pods = slices.Clone(c.Pods)
				for i := range c.Pods {
					c.Pods[i].BlockingPDB = "default/all"
				}
			})
		},
		ObstacleDoNotDisrupt: func(s *planning.Snapshot) {
			changePods(s, func(c *planning.PodClass) { c.Spec.DoNotDisrupt = "true" })
		},
		ObstacleBudgets: func(s *planning.Snapshot) {
			changePools(s, func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}} })
		},
		ObstaclePolicies: func(s *planning.Snapshot) {
			changePools(s, func(p *karpenter.NodePool) {
				p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmpty
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := free
			block(&from.Snapshot)
			got, err := Assess(from, options)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(got.Obstacles, func(o Obstacle) bool { return o.Name == name })
			if at < 0 {
				t.Fatalf("the obstacles are %+v", got.Obstacles)
			}
			o := got.Obstacles[at]
			saved := got.Result.CostAfter - want.Result.CostAfter
			if len(o.Kept) == 0 || o.Cost <= 0 || o.Saving == nil || *o.Saving < saved-1e-6 || *o.Saving > saved+1e-6 || saved <= 0 {
				t.Errorf("%d nodes at $%.4f, saving %v, want $%.4f", len(o.Kept), o.Cost, o.Saving, saved)
			}
		})
	}
}

// TestObstacleTime: without time no obstacle is simulated, and each is still counted.
func TestObstacleTime(t *testing.T) {
	from := randomSource(2)
	liftBudgets(&from.Snapshot)
	changePools(&from.Snapshot, func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}} })
	now := planningtest.Now
	a, err := Assess(from, assessOptions(func() time.Time { now = now.Add(time.Hour); return now }))
	if err != nil || len(a.Obstacles) == 0 || a.Obstacles[0].Saving != nil || len(a.Obstacles[0].Kept) == 0 {
		t.Errorf("%+v, %v", a.Obstacles, err)
	}
}
