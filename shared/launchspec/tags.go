package launchspec

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ownerTags returns the tags of all resources of the pool. They identify Joist's resources, and IAM
// policies allow it to change only those. The class may add tags, but not replace these or set another
// owner.
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

// fleetTagSets returns the tags of the fleet call, which include the intent: it identifies the
// instances of a launch whose result was lost. The intent is not in the template, so that intents can
// share templates.
func fleetTagSets(owner map[string]string, intent string) []cloud.TagSet {
	tags := maps.Clone(owner)
	tags[IntentTag] = intent
	var sets []cloud.TagSet
	for _, resource := range []string{"instance", "volume", "fleet"} {
		sets = append(sets, cloud.TagSet{Resource: resource, Tags: tags})
	}
	return sets
}

// templateTagSets returns the tags of resources that a fleet call cannot tag.
func templateTagSets(owner map[string]string, capacityType string) []cloud.TagSet {
	sets := []cloud.TagSet{{Resource: "network-interface", Tags: owner}}
	if capacityType == cloud.Spot {
		sets = append(sets, cloud.TagSet{Resource: "spot-instances-request", Tags: owner})
	}
	return sets
}
