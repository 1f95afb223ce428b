package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// FindBufferNodes returns the names of nodes that hold capacity for CapacityBuffers and must not be
// removed as empty. It places the buffers' pods as if nothing could be launched, so that the result
// depends only on the snapshot.
func FindBufferNodes(s planning.Snapshot) map[string]bool {
	pods := planning.NewBufferPods(s.Buffers)
	if !s.Settings.Gates.CapacityBuffer || len(pods) == 0 {
		return nil
	}
	out := map[string]bool{}
	for _, n := range SolveWithTypes(planning.Batch{Snapshot: s, Pending: pods}, instancetypes.InstanceTypes{}).Nominations {
		out[n.Node] = true
	}
	delete(out, "") // NodeClaims without a node cannot be empty nodes.
	return out
}
