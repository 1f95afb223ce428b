package lifecycle

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
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
