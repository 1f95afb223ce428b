package instancetypes

import (
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// maxSpreadInstances is the maximum number of running instances of a spread placement group in one
// zone.
const maxSpreadInstances = 7

// findPlacementGroup returns the placement group that the class selects. If the catalogue does not
// have the group, only its id is set, if the selector has it.
func findPlacementGroup(class *karpenter.EC2NodeClass, cat catalog.Catalogue) (group catalog.PlacementGroup, selected bool) {
	selector := class.Spec.PlacementGroupSelector
	if selector == nil {
		return group, false
	}
	if group, known := cat.FindPlacementGroup(selector); known {
		return group, true
	}
	if selector.ID != nil {
		group.ID = *selector.ID
	}
	return group, true
}

// countSpreadCapacity returns how many more nodes each zone takes for classes with a spread placement
// group, by class and zone.
func countSpreadCapacity(s planning.Snapshot, cat catalog.Catalogue) map[string]map[string]int {
	var out map[string]map[string]int
	for i := range s.NodeClasses {
		class := &s.NodeClasses[i]
		group, _ := findPlacementGroup(class, cat)
		if group.Strategy != catalog.SpreadStrategy {
			continue
		}
		zones := map[string]int{}
		for _, subnet := range class.Status.Subnets {
			zones[subnet.Zone] = max(0, maxSpreadInstances-countGroupMembers(s, class.Name, group.ID, subnet.Zone))
		}
		if out == nil {
			out = map[string]map[string]int{}
		}
		out[class.Name] = zones
	}
	return out
}

// countPartitions returns the number of partitions of the partition placement groups of classes, by class.
func countPartitions(s planning.Snapshot, cat catalog.Catalogue) map[string]int64 {
	var out map[string]int64
	for i := range s.NodeClasses {
		group, _ := findPlacementGroup(&s.NodeClasses[i], cat)
		if group.Strategy != catalog.PartitionStrategy || group.Partitions <= 0 {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[s.NodeClasses[i].Name] = group.Partitions
	}
	return out
}

// countGroupMembers counts the nodes of a group in a zone, and NodeClaims that may still be launched
// there. A node without the group's label counts if it has the class.
func countGroupMembers(s planning.Snapshot, class, group, zone string) int {
	count := 0
	for i := range s.Nodes {
		node := &s.Nodes[i]
		in, said := node.Labels[karpenter.LabelPlacementGroupID]
		mine := said && in == group || !said && node.Labels[karpenter.LabelEC2NodeClass] == class
		if mine && node.CanBeInZone(zone) {
			count++
		}
	}
	return count
}

// joinPlacementGroup adds the label of the class's placement group to the type. In zones where the
// group is full, offerings become unavailable.
func (t *Type) joinPlacementGroup(class *karpenter.EC2NodeClass, cat catalog.Catalogue, rooms map[string]int) {
	if group, selected := findPlacementGroup(class, cat); selected && group.ID != "" {
		t.Labels[karpenter.LabelPlacementGroupID] = group.ID
	}
	for i := range t.Offerings {
		if room, bounded := rooms[t.Offerings[i].Zone]; bounded && room == 0 {
			t.Offerings[i].Available = false
		}
	}
}
