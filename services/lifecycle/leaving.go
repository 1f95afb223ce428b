package lifecycle

import "github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"

// leaving gathers what the decision about a claim on its way out looks at beside
// the view itself.
func (s *Service) leaving(v claim.View, _ world) claim.Leaving {
	if v.Claim.DeletionTimestamp == nil {
		return claim.Leaving{}
	}
	return claim.Leaving{MayEvict: s.mayEvict}
}
