package instancetypes

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// countFreeIPs returns the number of free addresses for new nodes, by class and zone. Only the subnet
// with the most free addresses in a zone counts, because a launch uses one subnet of a zone. Zones
// without a counted subnet are left out.
func countFreeIPs(s planning.Snapshot, cat catalog.Catalogue) map[string]map[string]int64 {
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
			zones[zone] = max(0, zones[zone]-countUncountedAddresses(s, s.ResolveCountTime(cat.CountedAt()), zone))
		}
		out[class.Name] = zones
	}
	return out
}

// countUncountedAddresses returns how many used addresses of a zone the count may not include. Their
// subnet is not known, so they count in every subnet.
func countUncountedAddresses(s planning.Snapshot, counted time.Time, zone string) int64 {
	total := int64(0)
	for i := range s.Nodes {
		if added := s.CountNewAddresses(&s.Nodes[i], counted); added > 0 && s.Nodes[i].CanBeInZone(zone) { // Most nodes add none, which is quicker to find.
			total += added
		}
	}
	return total
}
