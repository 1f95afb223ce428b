package lifecycle

import "github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"

// joining gathers what the decision about a claim that is coming up, or runs,
// looks at beside the view itself.
func (s *Service) joining(v claim.View, w world) claim.Joining {
	if v.Node == nil {
		return claim.Joining{}
	}
	return claim.Joining{Nodes: w.nodes[v.Claim.Status.ProviderID], PodsChanged: s.podsChanged(v.Claim, v.Pods)}
}
