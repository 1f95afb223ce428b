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

// adviseEvery is how long the same advice about a class is not repeated: a class
// that cannot launch is met again with each batch.
const adviseEvery = 10 * time.Minute

// advise tells people what the plan means for them: the pods where they will go
// or why nowhere, and NodePools and EC2NodeClasses what keeps them from launching.
// It comes last, for nobody should wait for it.
func (s *Service) advise(ctx context.Context, plan planning.Plan, held outbox.Outbox) error {
	var refused []string
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			if !held.Lists(c.Object.Name) {
				refused = append(refused, c.Object.Name)
			}
		}
	}
	launched := func(claim string) bool { return !slices.Contains(refused, claim) }
	effects := s.warn(plan.Warnings)
	effects = append(effects, s.barren(plan)...)
	told := s.do.Do(ctx, nil, append(effects, s.advised.ReportPods(plan, launched, s.Now())...)...)
	return errors.Join(told, s.buffered(ctx, plan), s.overlaid(ctx, plan))
}

// barren tells NodePools that they have no instance type to offer.
func (s *Service) barren(plan planning.Plan) []effect.Effect {
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

// warn tells on each EC2NodeClass what the plan has to say of its launches: what
// a condition cannot know, for it depends on the NodePool and the type too, as the
// size of the whole user data does.
func (s *Service) warn(warnings []planning.Warning) []effect.Effect {
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
			Message: "NodePool " + w.NodePool + ": " + w.Message, Dedupe: adviseEvery, Now: s.Now(),
		}})
	}
	return effects
}
