package disruption

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/driftwaves"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// driftWaves are how the drift of NodePools goes on that ask for it in waves.
type driftWaves struct {
	pools map[string]*driftwaves.Waves
	// invalid are the pools that may ask for it: what they ask of drift cannot be read.
	invalid map[string]error
	// objections are the drifted nodes that have to wait, by their places in the snapshot. It is
	// told of them whatever else may stand against them later.
	objections map[int]candidate.Objection
}

func newDriftWaves(s *planning.Snapshot) driftWaves {
	out := driftWaves{pools: map[string]*driftwaves.Waves{}, invalid: map[string]error{}, objections: map[int]candidate.Objection{}}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		drift, err := policy.ReadDrift(pool.Annotations)
		if err != nil {
			out.invalid[pool.Name] = err
		}
		out.pools[pool.Name] = driftwaves.New(s, pool, drift)
	}
	return out
}

// checkWave is what keeps a drifted node until those that went before it have proved
// what comes instead.
func (w driftWaves) checkWave(m Method, c *candidate.Candidate) candidate.Objection {
	if m != Drift && m != StaticDrift || c.Node.Drift == nil {
		return candidate.Objection{}
	}
	no := w.pools[c.Node.NodePool].Objection(c.Node.Drift.Since)
	if err := w.invalid[c.Node.NodePool]; err != nil {
		no = candidate.Objection{Rule: thresholds.RuleUnreadable, Detail: "what its NodePool asks of drift cannot be read: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	if !no.IsNone() {
		w.objections[c.Index] = no
	}
	return no
}

// addLaunches counts what comes for a drifted node.
func (w driftWaves) addLaunches(a *attempt) {
	if a.Method == Drift || a.Method == StaticDrift {
		w.pools[a.nodes[0].Node.NodePool].AddLaunches(len(a.Result.Nodes))
	}
}

// listHalted are the pools whose drift does not go on by itself: somebody should look.
func (w driftWaves) listHalted(s *planning.Snapshot) []error {
	var out []error
	told := map[string]bool{}
	for i := range s.Nodes {
		pool := s.Nodes[i].NodePool
		if no := w.objections[i]; no.Rule == driftwaves.RuleHalted && !told[pool] {
			told[pool] = true
			out = append(out, fmt.Errorf("NodePool %s: drift is halted: %s", pool, no.Detail))
		}
	}
	return out
}
