package lifecycle

import (
	"context"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/sweep"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// scan is how often a node is compared with what its claim promised (B136).
const scan = 10 * time.Minute

// joining gathers what the decision about a claim that is coming up, or runs,
// looks at beside the view itself.
func (s *Service) joining(v claim.View, w world) claim.Joining {
	j := claim.Joining{MayScan: func() bool { return s.due("shape/"+string(v.Claim.UID), scan) }}
	if ref := v.Claim.Spec.NodeClassRef; ref != nil {
		j.Expiring = claim.Expiring(v.Claim, w.classes[ref.Name], s.Now())
	}
	if v.Node != nil {
		j.Nodes, j.PodEvent = w.nodes[v.Claim.Status.ProviderID], s.podEvent(v.Claim, v.Pods)
	}
	return j
}

// part writes down which partitions of their placement groups instances came into
// (B130), which their nodes wait for.
func (s *Service) part(ctx context.Context, bound []sweep.Bound) error {
	for _, b := range bound {
		parted := b.Claim.DeepCopy()
		parted.Labels[karpenter.LabelPlacementGroupPartition] = strconv.Itoa(int(b.Instance.Partition))
		if err := s.do.Do(ctx, nil, effect.Update{Object: parted}); err != nil {
			return err
		}
	}
	return nil
}

// demote lets claims say that their reservation has ended (B124). Their nodes
// follow in the next look.
func (s *Service) demote(ctx context.Context, claims []*karpenter.NodeClaim) error {
	for _, c := range claims {
		if err := s.do.Do(ctx, nil, effect.Update{Object: claim.Demoted(c)}); err != nil {
			return err
		}
	}
	return nil
}
