// Package dryrun builds the dry runs that check a node class: calls with the permissions and the
// resources that a real launch would need. It is pure. The calls omit user data and kubelet settings,
// because EC2 does not check them in a dry run. They also omit network interfaces that the instance
// type of the dry run cannot have.
package dryrun

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// Requests are the dry runs in their order: the template, the fleet, and then the runs
// until one is allowed.
type Requests struct {
	Template cloud.Template
	Fleet    cloud.FleetRequest
	Runs     []cloud.RunRequest
}

// maxInterfaces is the maximum number of network interfaces of the types of event.DryRunType, all on
// their only network card: https://docs.aws.amazon.com/ec2/latest/instancetypes/gp.html
const maxInterfaces = 3

// BuildRequests builds the dry runs of a class with resolved selectors, for the instance type, the
// tenancy and the region of the request. The error is fault.Invalid if the status lacks an AMI, a
// security group, a subnet or the instance profile.
func BuildRequests(class *karpenter.EC2NodeClass, cluster string, request event.NodeClassEnsure) (Requests, error) {
	status := class.Status
	if len(status.AMIs) == 0 || len(status.SecurityGroups) == 0 || len(status.Subnets) == 0 || status.InstanceProfile == "" {
		return Requests{}, fault.F("building the dry runs of EC2NodeClass "+class.Name, fault.Invalid,
			"an AMI, a security group, a subnet and an instance profile are needed")
	}
	family, err := class.AMIFamily()
	if err != nil {
		return Requests{}, fault.E("building the dry runs of EC2NodeClass "+class.Name, fault.Invalid, err)
	}
	tags := launchTags(class, cluster)
	template := cloud.Template{
		ImageID: status.AMIs[0].ID, InstanceProfile: status.InstanceProfile, Tags: tags,
		BlockDevices: launchspec.BlockDevices(class, family),
		Metadata:     launchspec.Metadata(class.Spec.MetadataOptions, request.Tags[corev1.LabelTopologyRegion]),
		TagSets:      []cloud.TagSet{{Resource: "network-interface", Tags: tags}},
		PublicIP:     class.Spec.AssociatePublicIPAddress, Interfaces: networkInterfaces(class),
	}
	if request.Tenancy != "" {
		template.Placement = &cloud.Placement{Tenancy: request.Tenancy}
	}
	for _, group := range status.SecurityGroups {
		template.SecurityGroups = append(template.SecurityGroups, group.ID)
	}
	content, err := json.Marshal(template)
	if err != nil {
		return Requests{}, fault.E("naming the launch template of a dry run", fault.Bug, err)
	}
	template.Name = "karpenter.k8s.aws/" + event.DeriveID("dry-run", event.Cluster{Name: cluster}, string(content))
	out := Requests{Template: template}
	out.addLaunches(class, cmp.Or(request.InstanceType, event.DryRunType(imageArchitecture(status.AMIs[0]))), tags)
	return out, nil
}

// addLaunches adds the fleet and one run for each subnet.
func (r *Requests) addLaunches(class *karpenter.EC2NodeClass, instanceType string, tags map[string]string) {
	tagSets := func(resources ...string) (out []cloud.TagSet) {
		for _, resource := range resources {
			out = append(out, cloud.TagSet{Resource: resource, Tags: tags})
		}
		return out
	}
	config := cloud.FleetConfig{Template: r.Template.Name}
	for _, subnet := range class.Status.Subnets {
		config.Overrides = append(config.Overrides, cloud.Override{InstanceType: instanceType, SubnetID: subnet.ID, Zone: subnet.Zone})
		r.Runs = append(r.Runs, cloud.RunRequest{
			Template: r.Template.Name, InstanceType: instanceType, SubnetID: subnet.ID,
			Interfaces: r.Template.Interfaces, SecurityGroups: r.Template.SecurityGroups,
			BlockDevices: r.Template.BlockDevices, Metadata: r.Template.Metadata, TagSets: tagSets("instance", "volume", "network-interface"),
		})
	}
	r.Fleet = cloud.FleetRequest{
		Count: 1, CapacityType: cloud.OnDemand, Strategy: "lowest-price",
		Configs: []cloud.FleetConfig{config}, TagSets: tagSets("instance", "volume", "fleet"),
	}
}

// networkInterfaces returns the class's network interfaces, or only the primary one if
// the type of the dry run cannot have them. The primary one is explicit, because EC2
// accepts security groups either on the instance or on interfaces, and a dry run must
// name the subnet on an interface.
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

// launchTags returns the tags of a launch, as IAM policies require them. The NodePool tag is
// empty, because policies require the key and a dry run has no NodePool.
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

// imageArchitecture returns the architecture of an AMI; amd64 if its requirements name none.
func imageArchitecture(ami karpenter.AMI) string {
	for _, r := range ami.Requirements {
		if r.Key == corev1.LabelArchStable && r.Operator == corev1.NodeSelectorOpIn && slices.Contains(r.Values, "arm64") {
			return "arm64"
		}
	}
	return "amd64"
}
