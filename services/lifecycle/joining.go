package lifecycle

import (
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
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

// withPartition is the claim with the partition of its placement group that its instance
// came into (B130), which its node waits for.
func withPartition(b sweep.Bound) *karpenter.NodeClaim {
	c := b.Claim.DeepCopy()
	c.Labels[karpenter.LabelPlacementGroupPartition] = strconv.Itoa(int(b.Instance.Partition))
	return c
}
