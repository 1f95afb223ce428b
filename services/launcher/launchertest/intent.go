package launchertest

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// IntentOptions describe an on-demand launch of one instance type for the NodePool and the EC2NodeClass "default".
type IntentOptions struct {
	Cluster, ID string
	// Count is the number of instances, and InstanceType their type; one m6i.large when zero.
	Count        int
	InstanceType string
	// Image, Profile and SecurityGroup are the names of the launch template's resources in AWS.
	Image, Profile, SecurityGroup string
	Subnets                       []cloud.Subnet
	// Tags are added to the tags of every launch.
	Tags map[string]string
}

// In returns the options with the resources of a cluster in EC2's model.
func (o IntentOptions) In(w memcloud.World) IntentOptions {
	o.Image, o.Profile, o.SecurityGroup, o.Subnets = w.ImageAMD64.ID, w.Profile, w.SecurityGroup.ID, w.Subnets
	return o
}

// NewIntent returns an intent as the planner writes it, with the tags on every resource of the launch.
func NewIntent(o IntentOptions) launchspec.Intent {
	o.Count = max(o.Count, 1)
	if o.InstanceType == "" {
		o.InstanceType = "m6i.large"
	}
	tags := map[string]string{
		"kubernetes.io/cluster/" + o.Cluster: "owned", karpenter.EKSClusterNameTagKey: o.Cluster,
		karpenter.NodePoolTagKey: "default", karpenter.NodeClassTagKey: "default", launchspec.IntentTag: o.ID,
	}
	maps.Copy(tags, o.Tags)
	sets := []cloud.TagSet{{Resource: "instance", Tags: tags}, {Resource: "volume", Tags: tags}, {Resource: "network-interface", Tags: tags}}
	template := cloud.Template{
		Name: "template-" + o.ID, ImageID: o.Image, InstanceProfile: o.Profile, SecurityGroups: []string{o.SecurityGroup}, Tags: tags, TagSets: sets,
		Metadata: cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"},
	}
	config := cloud.FleetConfig{Template: template.Name}
	for _, subnet := range o.Subnets {
		config.Overrides = append(config.Overrides, cloud.Override{InstanceType: o.InstanceType, SubnetID: subnet.ID, Zone: subnet.Zone})
	}
	out := launchspec.Intent{
		ID: o.ID, Cluster: o.Cluster, NodePool: "default", NodeClass: "default", Templates: []cloud.Template{template},
		Fleet: cloud.FleetRequest{
			Token: o.ID, Count: o.Count, CapacityType: cloud.OnDemand, Strategy: "lowest-price", Configs: []cloud.FleetConfig{config},
			TagSets: append(slices.Clip(sets), cloud.TagSet{Resource: "fleet", Tags: tags}),
		},
	}
	for slot := range o.Count {
		out.Claims = append(out.Claims, launchspec.ClaimName("default", o.ID, slot))
	}
	return out
}
