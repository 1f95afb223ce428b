package lifecycle

import (
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// scan is how often a node is compared with what its claim promised.
const scan = 10 * time.Minute

// joining gathers what the decision about a claim that is coming up, or runs,
// looks at beside the view itself.
func (s *Service) joining(v nodeclaim.View, w world) nodeclaim.Joining {
	j := nodeclaim.Joining{MayScan: func() bool { return s.due("shape/"+string(v.Claim.UID), scan) }}
	if ref := v.Claim.Spec.NodeClassRef; ref != nil {
		j.Expiring = nodeclaim.Expiring(v.Claim, w.classes[ref.Name], s.Now())
	}
	if v.Node != nil {
		j.Nodes, j.PodEvent = w.nodes[v.Claim.Status.ProviderID], s.podEvent(v.Claim, v.Pods)
	}
	return j
}

// withPartition is the claim with the partition of its placement group that its instance
// came into, which its node waits for.
func withPartition(b garbagecollection.BoundClaim) *karpenter.NodeClaim {
	c := b.Claim.DeepCopy()
	c.Labels[karpenter.LabelPlacementGroupPartition] = strconv.Itoa(int(b.Instance.Partition))
	return c
}
