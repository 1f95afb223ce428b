package scenario

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// rest is how long nothing has happened in a fleet.
const rest = 100 * 365 * 24 * time.Hour

// Fleet is the scenario as disruption sees it: nodes on which nothing has happened
// for a long time, so that whatever NodePools wait for has been waited for, and pods
// that wait.
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
