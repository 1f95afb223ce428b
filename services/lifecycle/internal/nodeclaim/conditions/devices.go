package conditions

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// FindMissingDriver returns the first of the DRA drivers named by the claim that has published no
// complete pool for the node; "" if all have. A pool is complete if it has as many slices of its
// newest generation as they state (Karpenter: pkg/controllers/nodeclaim/lifecycle/initialization.go,
// DRADriversPublished).
func FindMissingDriver(claim *karpenter.NodeClaim, node *corev1.Node, slices []*resourcev1.ResourceSlice) string {
	drivers := karpenter.RequestedDRADrivers(claim)
	if len(drivers) == 0 {
		return ""
	}
	complete := completeDrivers(node, slices)
	for _, driver := range drivers {
		if !complete[driver] {
			return driver
		}
	}
	return ""
}

// completeDrivers returns the drivers with a complete pool for the node.
func completeDrivers(node *corev1.Node, slices []*resourcev1.ResourceSlice) map[string]bool {
	type pool struct{ driver, name string }
	type count struct{ generation, found, want int64 }
	pools := map[pool]count{}
	for _, slice := range slices {
		if !belongsTo(slice, node) {
			continue
		}
		key := pool{slice.Spec.Driver, slice.Spec.Pool.Name}
		have, known := pools[key]
		switch generation := slice.Spec.Pool.Generation; {
		case !known || generation > have.generation:
			pools[key] = count{generation, 1, slice.Spec.Pool.ResourceSliceCount}
		case generation == have.generation:
			have.found++
			pools[key] = have
		}
	}
	out := map[string]bool{}
	for key, have := range pools {
		if have.want > 0 && have.found == have.want {
			out[key.driver] = true
		}
	}
	return out
}

// belongsTo reports whether the slice's devices are those of the node, by its name or its owner.
func belongsTo(slice *resourcev1.ResourceSlice, node *corev1.Node) bool {
	if name := slice.Spec.NodeName; name != nil && *name == node.Name {
		return true
	}
	for _, owner := range slice.OwnerReferences {
		if owner.Kind == cluster.Nodes.Kind && owner.Name == node.Name {
			return true
		}
	}
	return false
}
