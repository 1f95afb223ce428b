package instancetypes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// typeAndImage is an instance type with a machine image: what decides how much memory a
// kernel finds.
type typeAndImage struct {
	instanceType, image string
}

// listReportedMemory is the least memory that nodes of a type and an image report. It is read off the snapshot's own nodes and remembered nowhere, where
// Karpenter remembers it for 60 days: once the last node of a type is gone, the
// next is planned by the estimate again. The estimate is low for nearly every
// type, so that what is forgotten costs a little room and never a pod its place;
// where it is high, one node is too small, says so, and is the measure of all
// further ones while it lives.
func listReportedMemory(nodes []planning.Node) map[typeAndImage]resource.Quantity {
	out := map[typeAndImage]resource.Quantity{}
	for i := range nodes {
		n := &nodes[i]
		// Before a node is initialized its figures may be the claim's, which are the
		// estimate.
		memory, ok := n.Capacity[corev1.ResourceMemory]
		if !n.Initialized || n.Image == "" || !ok || memory.Sign() <= 0 {
			continue
		}
		key := typeAndImage{n.Labels[corev1.LabelInstanceTypeStable], n.Image}
		if least, known := out[key]; !known || memory.Cmp(least) < 0 {
			out[key] = memory
		}
	}
	return out
}

// disableShiftedZones makes unavailable what lies in zones that the cluster is to be kept away
// from, reservations included.
func disableShiftedZones(offers []InstanceOffering, zoneIDs []string) []InstanceOffering {
	for i := range offers {
		offers[i].Available = offers[i].Available && !slices.Contains(zoneIDs, offers[i].ZoneID)
	}
	return offers
}
