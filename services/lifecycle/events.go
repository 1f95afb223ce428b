package lifecycle

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// warningInterval is how long the same warning about a node class is not repeated. Each batch
// repeats the cause.
const warningInterval = 10 * time.Minute

// reportPlan publishes the Events of a plan on pods, NodePools and EC2NodeClasses, and the statuses
// of buffers and overlays. It comes last, because nothing depends on it.
func (s *Service) reportPlan(ctx context.Context, plan planning.Plan, held outbox.Outbox) error {
	var refused []string
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			if !held.ListsClaim(c.Object.Name) {
				refused = append(refused, c.Object.Name)
			}
		}
	}
	launched := func(claim string) bool { return !slices.Contains(refused, claim) }
	effects := s.reportWarnings(plan.Warnings)
	effects = append(effects, s.reportUnusableNodePools(plan)...)
	published := s.executor.Execute(ctx, nil, append(effects, s.publisher.ReportPods(plan, launched, s.Now())...)...)
	return errors.Join(published, s.recordBufferPlacements(ctx, plan), s.updateOverlayStatuses(ctx, plan))
}

// reportUnusableNodePools returns the Events on NodePools without a compatible instance type.
func (s *Service) reportUnusableNodePools(plan planning.Plan) []effect.Effect {
	var effects []effect.Effect
	pools := events.UnusableNodePools(plan)
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		if pool, known := s.Cache.Get(cluster.NodePools, cluster.Key{Name: name}); known {
			effects = append(effects, events.NoCompatibleInstanceTypes.About(cluster.NodePools, pool, s.Now(),
				"NodePool requirements filtered out all compatible available instance types: %s", pools[name]))
		}
	}
	return effects
}

// reportWarnings returns the Events on EC2NodeClasses with the plan's warnings about launches. A
// condition cannot contain them, because they also depend on the NodePool and the instance type,
// for example through the size of the user data.
func (s *Service) reportWarnings(warnings []planning.Warning) []effect.Effect {
	var effects []effect.Effect
	for _, w := range warnings {
		class, known := s.Cache.Get(cluster.NodeClasses, cluster.Key{Name: w.NodeClass})
		if !known {
			continue
		}
		reason := "LaunchWarning"
		if w.Rule == launchspec.WarnUnwritable {
			reason = "LaunchNotPossible"
		}
		effects = append(effects, effect.Report{Event: cluster.Event{
			About: class.(*karpenter.EC2NodeClass), Kind: cluster.NodeClasses, Type: "Warning", Reason: reason,
			Message: "NodePool " + w.NodePool + ": " + w.Message, Dedupe: warningInterval, Now: s.Now(),
		}})
	}
	return effects
}
