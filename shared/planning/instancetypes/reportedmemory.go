package instancetypes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// typeAndImage is an instance type and an image, which together determine the memory that the kernel
// reports.
type typeAndImage struct {
	instanceType, image string
}

// listReportedMemory returns the lowest memory that nodes of each type and image report. It only uses
// the nodes of the snapshot, while Karpenter caches the memory for 60 days: without a node of a type,
// the next one is planned with the estimate. The estimate is low for nearly every type, which wastes a
// little capacity but leaves no pod unplaced. If it is too high, one node is too small, and its
// reported memory is used for further nodes while it exists.
func listReportedMemory(nodes []planning.Node) map[typeAndImage]resource.Quantity {
	out := map[typeAndImage]resource.Quantity{}
	for i := range nodes {
		n := &nodes[i]
		key := typeAndImage{n.Labels[corev1.LabelInstanceTypeStable], n.Image}
		memory, ok := reportedMemory(n)
		if least, known := out[key]; ok && (!known || memory.Cmp(least) < 0) {
			out[key] = memory
		}
	}
	return out
}

// reportedMemory returns the memory that a node reports; false if that is not known. Before initialization the values may
// be those of the NodeClaim, which are the estimate.
func reportedMemory(n *planning.Node) (resource.Quantity, bool) {
	memory, ok := n.Capacity[corev1.ResourceMemory]
	return memory, ok && n.Initialized && n.Image != "" && memory.Sign() > 0
}

// FindReportedMemory returns the lowest memory that nodes of an instance type and image report; false without such a node.
func FindReportedMemory(nodes []planning.Node, instanceType, image string) (least resource.Quantity, found bool) {
	for i := range nodes {
		n := &nodes[i]
		if n.Image != image || n.Labels[corev1.LabelInstanceTypeStable] != instanceType {
			continue
		}
		if memory, ok := reportedMemory(n); ok && (!found || memory.Cmp(least) < 0) {
			least, found = memory, true
		}
	}
	return least, found
}

// disableShiftedZones makes offerings in zones with an active zonal shift unavailable, including
// reservations.
func disableShiftedZones(offers []InstanceOffering, zoneIDs []string) []InstanceOffering {
	for i := range offers {
		offers[i].Available = offers[i].Available && !slices.Contains(zoneIDs, offers[i].ZoneID)
	}
	return offers
}
