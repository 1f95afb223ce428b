package lifecycle

import (
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
)

// scan is how often a node is compared with what its claim promised (B136).
const scan = 10 * time.Minute

// joining gathers what the decision about a claim that is coming up, or runs,
// looks at beside the view itself.
func (s *Service) joining(v claim.View, w world) claim.Joining {
	if v.Node == nil {
		return claim.Joining{}
	}
	return claim.Joining{
		Nodes: w.nodes[v.Claim.Status.ProviderID], PodEvent: s.podEvent(v.Claim, v.Pods),
		MayScan: func() bool { return s.due("shape/"+string(v.Claim.UID), scan) },
	}
}
