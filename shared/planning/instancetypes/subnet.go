package instancetypes

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// countFreeIPs is how many addresses each zone has left for new nodes of each class,
// by class and zone: those of its largest subnet there, because a launch uses one
// subnet of a zone. Zones of which no subnet was counted are left out.
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
			zones[zone] = max(0, zones[zone]-countUncountedAddresses(s, cat.CountedAt(), zone))
		}
		out[class.Name] = zones
	}
	return out
}

// countUncountedAddresses is how many addresses of a zone the count does not know of. Which subnet
// they are of is not known here, so they count in all.
func countUncountedAddresses(s planning.Snapshot, counted time.Time, zone string) int64 {
	total := int64(0)
	for i := range s.Nodes {
		if s.Nodes[i].CanBeInZone(zone) {
			total += s.Nodes[i].CountNewAddresses(counted)
		}
	}
	return total
}
