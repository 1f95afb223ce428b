package memcloud

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// World is the resources that Furnish has created.
type World struct {
	Cluster       cloud.ClusterInfo
	Subnets       []cloud.Subnet
	SecurityGroup cloud.SecurityGroup
	// ImageAMD64 and ImageARM64 are AL2023 for the cluster's version.
	ImageAMD64, ImageARM64 cloud.Image
	// Role is an IAM role, and Profile an instance profile with it.
	Role, Profile string
}

// KubernetesVersion is the version of the clusters that Furnish creates.
const KubernetesVersion = "1.36"

// Furnish adds what a node of an EKS cluster needs: a subnet in every zone of the catalogue and a security group,
// both tagged karpenter.sh/discovery with the cluster's name; AL2023 images with their SSM parameters; the cluster;
// and an instance profile with a role.
func (c *Cloud) Furnish(name string) World {
	tags := map[string]string{"karpenter.sh/discovery": name, "kubernetes.io/cluster/" + name: "owned"}
	w := World{Role: name + "-node", Profile: name + "-node"}
	w.Cluster = cloud.ClusterInfo{
		Name: name, ARN: "arn:aws:eks:" + c.options.Region + ":" + c.options.Account + ":cluster/" + name,
		Endpoint: "https://" + name + ".eks.example", CABundle: "Y2EK",
		ServiceCIDR: "172.20.0.0/16", Version: KubernetesVersion,
	}
	c.AddCluster(w.Cluster)
	for zone, zoneID := range c.sortedZones() {
		w.Subnets = append(w.Subnets, c.AddSubnet(cloud.Subnet{
			Zone: zone, ZoneID: zoneID, VPC: "vpc-" + name, FreeIPs: 4091, Tags: tags,
		}))
	}
	w.SecurityGroup = c.AddSecurityGroup(cloud.SecurityGroup{Name: name + "-node", Tags: tags})
	w.ImageAMD64 = c.addAL2023("amd64", "x86_64")
	w.ImageARM64 = c.addAL2023("arm64", "arm64")
	c.AddRole(w.Role)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.profiles[w.Profile] = &cloud.Profile{Name: w.Profile, Path: "/", Role: w.Role, Tags: map[string]string{}}
	return w
}

// AddAL2023 publishes a newer AL2023 image for both architectures, as AWS does every few weeks.
func (c *Cloud) AddAL2023() (amd64, arm64 cloud.Image) {
	return c.addAL2023("amd64", "x86_64"), c.addAL2023("arm64", "arm64")
}

// addAL2023 uses AWS's names for the image and for the parameters that Karpenter's aliases read: latest, and the
// version itself.
func (c *Cloud) addAL2023(arch, machine string) cloud.Image {
	c.mu.Lock()
	release := "v" + c.clock.UTC().Format("20060102")
	c.mu.Unlock()
	name := fmt.Sprintf("amazon-eks-node-al2023-%s-standard-%s-%s", machine, KubernetesVersion, release)
	image := c.AddImage(cloud.Image{Name: name, Owner: "amazon", Arch: arch})
	prefix := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/standard/", KubernetesVersion, machine)
	c.SetParameter(prefix+"recommended/image_id", image.ID)
	c.SetParameter(prefix+name+"/image_id", image.ID)
	return image
}

// sortedZones yields the catalogue's zones with their ids.
func (c *Cloud) sortedZones() func(func(zone, id string) bool) {
	zones := map[string]string{}
	for _, t := range c.types {
		for _, o := range t.Offerings {
			zones[o.Zone] = o.ZoneID
		}
	}
	return func(yield func(zone, id string) bool) {
		for _, zone := range slices.Sorted(maps.Keys(zones)) {
			if !yield(zone, zones[zone]) {
				return
			}
		}
	}
}
