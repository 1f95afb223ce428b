package simulate

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Obstacle is a group of rules that keep nodes which consolidation might otherwise remove.
type Obstacle struct {
	// Name is one of the names below.
	Name string
	// Kept are its nodes, and Cost is what they cost.
	Kept []disruption.Kept
	Cost float64
	// Saving is how much more consolidation would save without the obstacle; nil if that was not
	// simulated.
	Saving *float64
}

// The names of obstacles.
const (
	ObstaclePodBudgets   = "pod-disruption-budgets"
	ObstacleDoNotDisrupt = "do-not-disrupt"
	ObstacleBudgets      = "nodepool-budgets"
	ObstaclePolicies     = "consolidation-policies"
	ObstacleRequirements = "requirements"
	ObstacleThresholds   = "thresholds"
	ObstacleSpot         = "spot-to-spot"
	ObstacleOther        = "other"
)

// obstacleKind is an obstacle: its rules, and the change of a snapshot that lifts it.
type obstacleKind struct {
	name  string
	rules []string
	// lift is nil if the obstacle cannot be simulated away.
	lift func(*planning.Snapshot)
}

// obstacleKinds are the rules of disruption that stand in the way of consolidation, by what a user can
// change. Nodes with other rules are as cheap as they can be, or receive the pods of others.
var obstacleKinds = []obstacleKind{
	{ObstaclePodBudgets, []string{"pod-disruption-budget"}, liftPodBudgets},
	{ObstacleDoNotDisrupt, []string{"do-not-disrupt", "pod-do-not-disrupt"}, liftDoNotDisrupt},
	{ObstacleBudgets, []string{"budget"}, liftBudgets},
	{ObstaclePolicies, []string{"consolidation-policy", "consolidation-disabled", "consolidate-after", "static-nodepool"}, liftPolicies},
	{ObstacleRequirements, []string{"pods-unplaceable", "min-values", "scheduler-placement", "no-replacement"}, nil},
	{ObstacleThresholds, []string{"min-saving", "payback", "cool-down", "evictions-per-hour", "balanced", "policy-unreadable"}, nil},
	{ObstacleSpot, []string{"spot-to-spot"}, liftSpotToSpot},
	{ObstacleOther, []string{"no-pool", "nodepool-deleting", "not-initialized", "nominated", "rebooting", "price-unknown", "capacity-buffer", "proposal-overturned"}, nil},
}

// obstacleTime limits the simulations without an obstacle. Their number does not depend on the cluster,
// but each takes as long as the consolidation itself.
const obstacleTime = time.Minute

// findObstacles groups the kept nodes, and simulates the consolidation without each obstacle.
func findObstacles(from Source, a Assessment, o ConsolidateOptions) ([]Obstacle, error) {
	prices := map[string]float64{}
	for _, n := range a.After {
		prices[n.Name] = n.Price
	}
	began := o.Now()
	var out []Obstacle
	for _, kind := range obstacleKinds {
		one := Obstacle{Name: kind.name}
		for _, k := range a.Result.Kept {
			if slices.Contains(kind.rules, k.Rule) {
				one.Kept = append(one.Kept, k)
				one.Cost += prices[k.Node]
			}
		}
		if len(one.Kept) == 0 {
			continue
		}
		if kind.lift != nil && o.Now().Sub(began) < obstacleTime {
			cost, err := consolidateWithout(from, kind, o)
			if err != nil {
				return nil, err
			}
			one.Saving = new(max(0, a.Result.CostAfter-cost))
		}
		out = append(out, one)
	}
	return out, nil
}

// consolidateWithout returns the cost after a consolidation without an obstacle.
func consolidateWithout(from Source, kind obstacleKind, o ConsolidateOptions) (float64, error) {
	s := from.Snapshot
	kind.lift(&s)
	result, err := Consolidate(from.FleetOf(s), o.quiet())
	return result.CostAfter, err
}

// liftPodBudgets lets PodDisruptionBudgets allow every eviction.
func liftPodBudgets(s *planning.Snapshot) {
	changePods(s, func(class *planning.PodClass) {
		class.Pods = slices.Clone(class.Pods)
		for i := range class.Pods {
			class.Pods[i].BlockingPDB = ""
		}
	})
}

// liftDoNotDisrupt removes the annotation from nodes and pods.
func liftDoNotDisrupt(s *planning.Snapshot) {
	changePods(s, func(class *planning.PodClass) { class.Spec.DoNotDisrupt = "" })
	for i := range s.Nodes {
		s.Nodes[i].DoNotDisrupt = false
	}
}

// changePods changes copies of all classes on nodes.
func changePods(s *planning.Snapshot, change func(*planning.PodClass)) {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, classes := range []*[]planning.PodClass{&n.Pods, &n.DaemonPods} {
			*classes = slices.Clone(*classes)
			for j := range *classes {
				change(&(*classes)[j])
			}
		}
	}
}

// liftBudgets lets all nodes of each NodePool be disrupted at once.
func liftBudgets(s *planning.Snapshot) {
	changePools(s, func(pool *karpenter.NodePool) {
		pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
	})
}

// liftPolicies lets all NodePools consolidate underutilized nodes at once.
func liftPolicies(s *planning.Snapshot) {
	changePools(s, func(pool *karpenter.NodePool) {
		pool.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized
		pool.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{Duration: new(time.Duration)}
	})
}

// liftSpotToSpot lets spot nodes replace spot nodes.
func liftSpotToSpot(s *planning.Snapshot) { s.Settings.Gates.SpotToSpotConsolidation = true }

// changePools changes copies of all NodePools.
func changePools(s *planning.Snapshot, change func(*karpenter.NodePool)) {
	s.NodePools = slices.Clone(s.NodePools)
	for i := range s.NodePools {
		change(&s.NodePools[i])
	}
}
