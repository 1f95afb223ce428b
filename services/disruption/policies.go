package disruption

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// poolPolicies are what the NodePools of a snapshot ask of Joist beyond their spec.
type poolPolicies struct {
	parsed map[string]policy.Policy
	// invalid are the NodePools whose annotations cannot be read. They have no policy, and
	// what it would have held back is left alone.
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

// listProblems are for a person to mend, in the order of the snapshot's NodePools.
func (p poolPolicies) listProblems(s *planning.Snapshot) []error {
	var out []error
	for i := range s.NodePools {
		if err := p.invalid[s.NodePools[i].Name]; err != nil {
			out = append(out, fmt.Errorf("NodePool %s: %w", s.NodePools[i].Name, err))
		}
	}
	return out
}
