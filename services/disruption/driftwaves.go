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

// driftWaves has the drift waves of the NodePools that set them.
type driftWaves struct {
	pools map[string]*driftwaves.Waves
	// invalid are the NodePools whose drift annotations cannot be read.
	invalid map[string]error
	// objections has the drifted nodes that have to wait, by their indexes in the snapshot. They
	// are reported in preference to later objections to the same nodes.
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

// checkWave returns the objection to replacing a drifted node before earlier replacements have been
// ready for long enough.
func (w driftWaves) checkWave(m Method, c *candidate.Candidate) candidate.Objection {
	if m != Drift && m != StaticDrift || c.Node.Drift == nil {
		return candidate.Objection{}
	}
	no := w.pools[c.Node.NodePool].Objection(c.Node.Drift.Since)
	if err := w.invalid[c.Node.NodePool]; err != nil {
		no = candidate.Objection{Rule: thresholds.RuleUnreadable, Detail: "the drift annotations of its NodePool cannot be read: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	if !no.IsNone() {
		w.objections[c.Index] = no
	}
	return no
}

// addLaunches counts the replacements of a drifted node.
func (w driftWaves) addLaunches(a *attempt) {
	if a.Method == Drift || a.Method == StaticDrift {
		launches := len(a.Result.Nodes)
		if a.TerminateFirst != "" {
			launches = len(a.nodes)
		}
		w.pools[a.nodes[0].Node.NodePool].AddLaunches(launches)
	}
}

// listHalted returns an error for each NodePool whose drift does not resume without user action.
func (w driftWaves) listHalted(s *planning.Snapshot) []error {
	var out []error
	reported := map[string]bool{}
	for i := range s.Nodes {
		pool := s.Nodes[i].NodePool
		if no := w.objections[i]; no.Rule == driftwaves.RuleHalted && !reported[pool] {
			reported[pool] = true
			out = append(out, fmt.Errorf("NodePool %s: drift is halted: %s", pool, no.Detail))
		}
	}
	return out
}
