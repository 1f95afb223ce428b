// Package rehearsal writes the calls by which a node class is tried: what a
// launch for it would ask of EC2, as far as rights and named resources go. It is
// pure. User data, devices and kubelets are left out, for EC2 does not look at
// them in a dry run, or does so for their rights alone; so are interfaces that the
// stand-in type cannot have, for EC2 would refuse them for that alone.
package dryrun

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Requests is what is tried, in this order: the template, the fleet, and the runs
// until one is allowed.
type Requests struct {
	Template cloud.Template
	Fleet    cloud.FleetRequest
	Runs     []cloud.RunRequest
}

// Types that stand in for those of the NodePools, by architecture: every region
// sells them. A policy that allows other types alone (ec2:InstanceType) refuses
// them.
var instanceTypes = map[string]string{"amd64": "m5.large", "arm64": "m6g.large"}

// maxInterfaces is how many interfaces either of the types takes, all on its one card.
// https://docs.aws.amazon.com/ec2/latest/instancetypes/gp.html
const maxInterfaces = 3

// BuildRequests writes the script for a class whose selectors are resolved. Tenancy is that of the instances; empty means the default.
func BuildRequests(class *karpenter.EC2NodeClass, cluster, tenancy string) (Requests, error) {
	status := class.Status
	if len(status.AMIs) == 0 || len(status.SecurityGroups) == 0 || len(status.Subnets) == 0 || status.InstanceProfile == "" {
		return Requests{}, fault.F("writing dry runs of EC2NodeClass "+class.Name, fault.Invalid,
			"an image, a security group, a subnet and an instance profile are needed")
	}
	tags := launchTags(class, cluster)
	template := cloud.Template{
		ImageID: status.AMIs[0].ID, InstanceProfile: status.InstanceProfile, Tags: tags,
		Metadata: cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"},
		TagSets:  []cloud.TagSet{{Resource: "network-interface", Tags: tags}},
		PublicIP: class.Spec.AssociatePublicIPAddress, Interfaces: networkInterfaces(class),
	}
	if tenancy != "" {
		template.Placement = &cloud.Placement{Tenancy: tenancy}
	}
	for _, group := range status.SecurityGroups {
		template.SecurityGroups = append(template.SecurityGroups, group.ID)
	}
	content, err := json.Marshal(template)
	if err != nil {
		return Requests{}, fault.E("naming the template of a dry run", fault.Bug, err)
	}
	template.Name = "karpenter.k8s.aws/" + event.DeriveID("rehearsal", event.Cluster{Name: cluster}, string(content))
	out := Requests{Template: template}
	out.addLaunches(class, instanceTypes[imageArchitecture(status.AMIs[0])], tags)
	return out, nil
}

// addLaunches writes the launches by the template.
func (s *Requests) addLaunches(class *karpenter.EC2NodeClass, instanceType string, tags map[string]string) {
	sets := func(resources ...string) (out []cloud.TagSet) {
		for _, resource := range resources {
			out = append(out, cloud.TagSet{Resource: resource, Tags: tags})
		}
		return out
	}
	config := cloud.FleetConfig{Template: s.Template.Name}
	for _, subnet := range class.Status.Subnets {
		config.Overrides = append(config.Overrides, cloud.Override{InstanceType: instanceType, SubnetID: subnet.ID, Zone: subnet.Zone})
		s.Runs = append(s.Runs, cloud.RunRequest{
			Template: s.Template.Name, InstanceType: instanceType, SubnetID: subnet.ID,
			Interfaces: s.Template.Interfaces, SecurityGroups: s.Template.SecurityGroups, TagSets: sets("instance", "volume", "network-interface"),
		})
	}
	s.Fleet = cloud.FleetRequest{
		Count: 1, CapacityType: cloud.OnDemand, Strategy: "lowest-price",
		Configs: []cloud.FleetConfig{config}, TagSets: sets("instance", "volume", "fleet"),
	}
}

// networkInterfaces are the class's, written out also where they are the one that
// every instance has: EC2 takes security groups beside interfaces or on them, and
// a dry run must name the subnet on one.
func networkInterfaces(class *karpenter.EC2NodeClass) []cloud.NetworkInterface {
	primary := []cloud.NetworkInterface{{}}
	var out []cloud.NetworkInterface
	for _, i := range class.Spec.NetworkInterfaces {
		if i.InterfaceType != karpenter.InterfaceTypeInterface || i.NetworkCardIndex != 0 {
			return primary
		}
		out = append(out, cloud.NetworkInterface{Card: i.NetworkCardIndex, Device: i.DeviceIndex, Kind: string(i.InterfaceType)})
	}
	if len(out) == 0 || len(out) > maxInterfaces {
		return primary
	}
	return out
}

// launchTags are those of a launch, as policies demand them. No NodePool is
// meant; the key is there because policies ask for it.
func launchTags(class *karpenter.EC2NodeClass, cluster string) map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, class.Spec.Tags)
	maps.Copy(tags, map[string]string{
		karpenter.ClusterTagPrefix + cluster: "owned",
		karpenter.EKSClusterNameTagKey:       cluster,
		karpenter.NodePoolTagKey:             "",
		karpenter.NodeClassTagKey:            class.Name,
	})
	return tags
}

// imageArchitecture is what an image boots, amd64 where it does not say.
func imageArchitecture(ami karpenter.AMI) string {
	for _, r := range ami.Requirements {
		if r.Key == corev1.LabelArchStable && r.Operator == corev1.NodeSelectorOpIn && slices.Contains(r.Values, "arm64") {
			return "arm64"
		}
	}
	return "amd64"
}
