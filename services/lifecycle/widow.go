package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/widow"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// widowEvery is how often nodes without a claim are looked after: they are rare,
// and all claims are read live for them.
const widowEvery = 2 * time.Second

// widows lets nodes go whose claim is no more (B028), and gives the removals of
// their pods. The watches of nodes and of claims are two: what one tells of is
// looked up live before anything is done.
func (s *Service) widows(ctx context.Context, w world) ([]effect.Job, error) {
	names := slices.Sorted(maps.Keys(w.named))
	nodes := w.nodesNamed(names)
	found := widow.Of(nodes, w.claims)
	if len(found) == 0 || !s.due("widows", widowEvery) {
		return nil, nil
	}
	if err := widow.Safe(found, nodes); err != nil {
		s.count(SweepsStopped, 1)
		return nil, err
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return nil, fmt.Errorf("listing NodeClaims for nodes that have none: %w", err)
	}
	var urgent, drains []effect.Job
	for _, node := range widow.Of(found, claims) {
		job := effect.Job{Name: "Node " + node.Name, Effects: widow.Next(node, w.pods(node.Name), s.removals.May, s.Now())}
		at, removals := job.Split()
		urgent, drains = append(urgent, at), append(drains, removals)
	}
	return drains, worth(s.do.All(ctx, urgent))
}
