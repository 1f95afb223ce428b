package disruption

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// poolPolicies are the policies that the NodePools' annotations set.
type poolPolicies struct {
	parsed map[string]policy.Policy
	// invalid has the errors of NodePools whose annotations cannot be parsed. They have no policy,
	// and disruption that the policy might have limited is blocked.
	invalid map[string]error
}

func newPolicies(s *planning.Snapshot) poolPolicies {
	out := poolPolicies{parsed: map[string]policy.Policy{}, invalid: map[string]error{}}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		read, err := policy.Read(pool.Annotations)
		if err != nil {
			out.invalid[pool.Name] = err
			continue
		}
		out.parsed[pool.Name] = read
	}
	return out
}

// listProblems returns the errors in the order of the snapshot's NodePools.
func (p poolPolicies) listProblems(s *planning.Snapshot) []error {
	var out []error
	for i := range s.NodePools {
		if err := p.invalid[s.NodePools[i].Name]; err != nil {
			out = append(out, fmt.Errorf("NodePool %s: %w", s.NodePools[i].Name, err))
		}
	}
	return out
}
