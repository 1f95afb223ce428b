package lifecycle

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// adviseEvery is how long the same advice about a class is not repeated: a class
// that cannot launch is met again with each batch.
const adviseEvery = 10 * time.Minute

// advise tells on each EC2NodeClass what the plan has to say of its launches: what
// a condition cannot know, for it depends on the NodePool and the type too, as the
// size of the whole user data does (B056).
func (s *Service) advise(ctx context.Context, plan scheduling.Plan) error {
	var effects []effect.Effect
	for _, w := range plan.Warnings {
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
	return s.do.Do(ctx, nil, effects...)
}
