package scenario

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// rest is the time since the last event on a fleet's nodes.
const rest = 100 * 365 * 24 * time.Hour

// Fleet converts the scenario to disruption's input: nodes without recent events, so that all delays
// of NodePools have passed, and pending pods.
func (s *Scenario) Fleet() (planning.Snapshot, instancetypes.InstanceTypes) {
	batch, stock := s.Problem(s.Pods())
	snapshot := batch.Snapshot
	snapshot.PendingPods = batch.Pending
	since := snapshot.TakenAt.Add(-rest)
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		n.Created, n.InitializedAt, n.LastPodEvent = since, since, since
	}
	return snapshot, stock
}
