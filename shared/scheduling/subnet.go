package scheduling

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// freeIPs is how many addresses each zone has left for new nodes of each class,
// by class and zone: those of its largest subnet there, because a launch uses one
// subnet of a zone. Zones of which no subnet was counted are left out.
func freeIPs(s Snapshot, cat catalog.Catalogue) map[string]map[string]int64 {
	if len(cat.Subnets) == 0 || cat.Cluster.IPFamily == "ipv6" {
		return nil
	}
	left := map[string]int64{}
	for _, n := range cat.Subnets {
		left[n.ID] = n.FreeIPs
	}
	out := map[string]map[string]int64{}
	for i := range s.NodeClasses {
		class := &s.NodeClasses[i]
		zones := map[string]int64{}
		for _, subnet := range class.Status.Subnets {
			if free, counted := left[subnet.ID]; counted {
				zones[subnet.Zone] = max(zones[subnet.Zone], free)
			}
		}
		for zone := range zones {
			zones[zone] = max(0, zones[zone]-taken(s, cat.CountedAt(), zone))
		}
		out[class.Name] = zones
	}
	return out
}

// taken is how many addresses of a zone young nodes may have that the count does
// not know of: one each, and one for each of their pods. Which subnet they took
// is not known here, so they count in all.
func taken(s Snapshot, counted time.Time, zone string) int64 {
	total := int64(0)
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if node.Claim == "" || node.Launched && node.Created.Before(counted.Add(-launchLag)) || !node.mayBeIn(zone) {
			continue
		}
		pods := node.Used[corev1.ResourcePods]
		if !node.Launched {
			pods = node.Allocatable[corev1.ResourcePods] // what it was planned for
		}
		total += 1 + pods.Value()
	}
	return total
}

// mayBeIn reports whether the node is in the zone, or could still come to be.
func (n *Node) mayBeIn(zone string) bool {
	if in := n.Labels[corev1.LabelTopologyZone]; in != "" || n.Launched {
		return in == zone
	}
	return !slices.ContainsFunc(n.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return karpenter.NormalizeLabel(r.Key) == corev1.LabelTopologyZone && !NewValues(r.Operator, r.Values...).Has(zone)
	})
}
