package disruption

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/services/disruption/internal/canary"
	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/restraint"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// waves are how the drift of NodePools goes on that ask for it in waves.
type waves struct {
	pools map[string]*canary.Rollout
	// wrong are the pools that may ask for it: what they ask of drift cannot be read.
	wrong map[string]error
	// held are the drifted nodes that have to wait, by their places in the snapshot. It is
	// told of them whatever else may stand against them later.
	held map[int]candidate.Objection
}

func newWaves(s *planning.Snapshot) waves {
	out := waves{pools: map[string]*canary.Rollout{}, wrong: map[string]error{}, held: map[int]candidate.Objection{}}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		drift, err := policy.ReadDrift(pool.Annotations)
		if err != nil {
			out.wrong[pool.Name] = err
		}
		out.pools[pool.Name] = canary.New(s, pool, drift)
	}
	return out
}

// objection is what keeps a drifted node until those that went before it have proved
// what comes instead.
func (w waves) objection(m Method, c *candidate.Candidate) candidate.Objection {
	if m != Drift && m != StaticDrift || c.Node.Drift == nil {
		return candidate.Objection{}
	}
	no := w.pools[c.Node.NodePool].Objection(c.Node.Drift.Since)
	if err := w.wrong[c.Node.NodePool]; err != nil {
		no = candidate.Objection{Rule: restraint.RuleUnreadable, Detail: "what its NodePool asks of drift cannot be read: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	if !no.None() {
		w.held[c.Index] = no
	}
	return no
}

// take counts what comes for a drifted node.
func (w waves) take(a *attempt) {
	if a.Method == Drift || a.Method == StaticDrift {
		w.pools[a.nodes[0].Node.NodePool].Take(len(a.Result.Nodes))
	}
}

// halted are the pools whose drift does not go on by itself: somebody should look.
func (w waves) halted(s *planning.Snapshot) []error {
	var out []error
	told := map[string]bool{}
	for i := range s.Nodes {
		pool := s.Nodes[i].NodePool
		if no := w.held[i]; no.Rule == canary.RuleHalted && !told[pool] {
			told[pool] = true
			out = append(out, fmt.Errorf("NodePool %s: drift is halted: %s", pool, no.Detail))
		}
	}
	return out
}
