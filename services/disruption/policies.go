package disruption

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// policies are what the NodePools of a snapshot ask of Joist beyond their spec.
type policies struct {
	read map[string]policy.Policy
	// wrong are the NodePools whose annotations cannot be read. They have no policy, and
	// what it would have held back is left alone.
	wrong map[string]error
}

func newPolicies(s *planning.Snapshot) policies {
	out := policies{read: map[string]policy.Policy{}, wrong: map[string]error{}}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		read, err := policy.Read(pool.Annotations)
		if err != nil {
			out.wrong[pool.Name] = err
			continue
		}
		out.read[pool.Name] = read
	}
	return out
}

// problems are for a person to mend, in the order of the snapshot's NodePools.
func (p policies) problems(s *planning.Snapshot) []error {
	var out []error
	for i := range s.NodePools {
		if err := p.wrong[s.NodePools[i].Name]; err != nil {
			out = append(out, fmt.Errorf("NodePool %s: %w", s.NodePools[i].Name, err))
		}
	}
	return out
}
