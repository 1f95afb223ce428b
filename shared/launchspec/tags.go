package launchspec

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ownerTags are on everything that is made for the pool: by them Joist
// knows its own, and the policies that bound its rights let it act. The class may
// add to them, and neither replace one nor claim another owner.
func ownerTags(cluster, nodePool string, class *karpenter.EC2NodeClass) map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, class.Spec.Tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return karpenter.IsRestrictedTag(key) })
	maps.Copy(tags, map[string]string{
		karpenter.ClusterTagPrefix + cluster: "owned",
		karpenter.EKSClusterNameTagKey:       cluster,
		karpenter.NodePoolTagKey:             nodePool,
		karpenter.NodeClassTagKey:            class.Name,
	})
	return tags
}

// fleetTagSets carry the intent too: by it instances are found whose launch was
// never answered. It is in the call and not in the template, for then no two
// intents could share a template.
func fleetTagSets(owner map[string]string, intent string) []cloud.TagSet {
	tags := maps.Clone(owner)
	tags[IntentTag] = intent
	var sets []cloud.TagSet
	for _, resource := range []string{"instance", "volume", "fleet"} {
		sets = append(sets, cloud.TagSet{Resource: resource, Tags: tags})
	}
	return sets
}

// templateTagSets are for what a fleet call cannot tag.
func templateTagSets(owner map[string]string, capacityType string) []cloud.TagSet {
	sets := []cloud.TagSet{{Resource: "network-interface", Tags: owner}}
	if capacityType == cloud.Spot {
		sets = append(sets, cloud.TagSet{Resource: "spot-instances-request", Tags: owner})
	}
	return sets
}
