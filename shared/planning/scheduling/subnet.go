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

// taken is how many addresses of a zone the count does not know of. Which subnet
// they are of is not known here, so they count in all.
func taken(s Snapshot, counted time.Time, zone string) int64 {
	total := int64(0)
	for i := range s.Nodes {
		if s.Nodes[i].MayBeIn(zone) {
			total += s.Nodes[i].Uncounted(counted)
		}
	}
	return total
}

// Uncounted is how many addresses the node may have that a count of that time does
// not know of, because it is too young: one for itself, and one for each pod.
func (n *Node) Uncounted(counted time.Time) int64 {
	if n.Claim == "" || n.Launched && n.Created.Before(counted.Add(-launchLag)) {
		return 0
	}
	pods := n.Used[corev1.ResourcePods]
	if !n.Launched {
		pods = n.Allocatable[corev1.ResourcePods] // what it was planned for
	}
	return 1 + pods.Value()
}

// MayBeIn reports whether the node is in the zone, or could still come to be.
func (n *Node) MayBeIn(zone string) bool {
	if in := n.Labels[corev1.LabelTopologyZone]; in != "" || n.Launched {
		return in == zone
	}
	return !slices.ContainsFunc(n.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return karpenter.NormalizeLabel(r.Key) == corev1.LabelTopologyZone && !NewValues(r.Operator, r.Values...).Has(zone)
	})
}
