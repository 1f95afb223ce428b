package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// FindBufferNodes names the nodes on which room is kept, which must not go for being
// empty. It asks where the buffers' pods would go if nothing could be
// launched, which depends on nothing but the snapshot.
func FindBufferNodes(s planning.Snapshot) map[string]bool {
	pods := planning.NewBufferPods(s.Buffers)
	if !s.Settings.Gates.CapacityBuffer || len(pods) == 0 {
		return nil
	}
	out := map[string]bool{}
	for _, n := range SolveWithTypes(planning.Batch{Snapshot: s, Pending: pods}, instancetypes.InstanceTypes{}).Nominations {
		out[n.Node] = true
	}
	delete(out, "") // Claims without a node cannot be empty nodes.
	return out
}
