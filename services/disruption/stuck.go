package disruption

import "github.com/joist-autoscaler/joist/services/disruption/internal/candidate"

// stick remembers what stands against drifted nodes before others are asked: who
// asks why such a node stays wants to hear why it is not replaced, and not that it
// saves nothing. A budget that opens later is seen, too.
func (p *pass) stick() {
	if p.stuck == nil {
		p.stuck = map[int]candidate.Objection{}
	}
	for i := range p.candidates {
		if c := &p.candidates[i]; c.Node.Drift != nil && !p.taken[c.Index] && p.why[c.Index].Rule != RuleNotDrifted {
			p.stuck[c.Index] = p.why[c.Index]
		}
	}
}
