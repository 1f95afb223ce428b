// Package room counts how many nodes of each pool may begin to go (B160).
package room

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/budget"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Room is how many more nodes of each pool may begin to go (B160).
type Room struct {
	allowed map[string]map[karpenter.DisruptionReason]int
	// busy counts the nodes that go or are not ready, for whatever reason.
	busy map[string]int
}

// New counts the nodes of a snapshot: of all that are initialized, those that
// are going, that are not ready, or whose removal has begun are busy. Problems names
// the budgets that cannot be read; their pools have no room.
func New(s *scheduling.Snapshot) (Room, []error) {
	out := Room{allowed: map[string]map[karpenter.DisruptionReason]int{}, busy: map[string]int{}}
	total := map[string]int{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || !n.Initialized {
			continue
		}
		total[n.NodePool]++
		if n.Going || !n.Ready || n.Proposal != nil && !n.Proposal.Confirmed.IsZero() {
			out.busy[n.NodePool]++
		}
	}
	var problems []error
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		allowed := map[karpenter.DisruptionReason]int{}
		for _, reason := range budget.Reasons {
			n, err := budget.Allowed(pool, total[pool.Name], reason, s.Taken)
			if err != nil {
				// It is the same for each reason: what cannot be read forbids everything.
				problems = append(problems, fmt.Errorf("NodePool %s: %w", pool.Name, err))
				break
			}
			allowed[reason] = n
		}
		out.allowed[pool.Name] = allowed
	}
	return out, problems
}

// Left is how many more nodes of the pool may begin to go for the reason.
func (r Room) Left(pool string, reason karpenter.DisruptionReason) int {
	return max(0, r.allowed[pool][reason]-r.busy[pool])
}

// Take counts a node that begins to go.
func (r Room) Take(pool string) { r.busy[pool]++ }
