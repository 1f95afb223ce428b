package launchspec

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// templatePrefix is Karpenter's, so that policies written for it fit (B194).
const templatePrefix = "karpenter.k8s.aws/"

// variant is what makes two templates of one launch differ.
type variant struct {
	image   string
	maxPods int64
}

// variants groups the chosen types by the template that they need, in the order
// of the cheapest.
func (g *recipe) variants() ([]variant, map[variant][]scheduling.Option, error) {
	var order []variant
	options := map[variant][]scheduling.Option{}
	for _, o := range g.choice.options {
		t, labels, err := g.hardware(o.InstanceType)
		if err != nil {
			return nil, nil, err
		}
		image, ok := scheduling.ImageFor(labels, g.class.Status.AMIs)
		if !ok {
			return nil, nil, fault.F("choosing an image", fault.Bug, "no image of EC2NodeClass %s boots %s", g.class.Name, o.InstanceType)
		}
		v := variant{image.ID, catalog.Pods(t, g.config)}
		if options[v] == nil {
			order = append(order, v)
		}
		options[v] = append(options[v], o)
	}
	return order, options, nil
}

// hardware is the type and the labels that it gives to a node.
func (g *recipe) hardware(name string) (catalog.InstanceType, map[string]string, error) {
	t, ok := g.catalogue.Find(name)
	if !ok {
		return t, nil, fault.F("reading the catalogue", fault.Bug, "it has no type %s", name)
	}
	labels := catalog.TypeLabels(t)
	maps.Copy(labels, catalog.FamilyLabels(g.config.AMIFamily))
	return t, labels, nil
}

// template writes one launch template whole.
func (g *recipe) template(v variant) (cloud.Template, error) {
	class := g.class
	text, err := userData(g.config.AMIFamily, g.boot(v))
	if err != nil {
		return cloud.Template{}, err
	}
	profile, err := instanceProfile(class)
	if err != nil {
		return cloud.Template{}, err
	}
	owner := ownerTags(g.cluster.Name, g.pool.Name, class)
	template := cloud.Template{
		ImageID: v.image, UserData: text, InstanceProfile: profile,
		SecurityGroups: securityGroups(class), BlockDevices: blockDevices(class, g.config.AMIFamily),
		Metadata: metadata(class.Spec.MetadataOptions), Monitoring: value(class.Spec.DetailedMonitoring),
		PublicIP: class.Spec.AssociatePublicIPAddress, PrefixCount: class.Spec.IPPrefixCount,
		Interfaces: interfaces(class), Connections: connections(class), CPU: cpu(class), Placement: placement(class),
		TagSets: templateTagSets(owner, g.choice.capacityType), Tags: owner,
	}
	template.Name, err = templateName(template)
	return template, err
}

// boot gathers what user data needs. Taints that start with the node are in it,
// and the one that keeps pods off until the node has all of its labels (B028).
func (g *recipe) boot(v variant) boot {
	labels := maps.Clone(g.labels)
	labels[karpenter.CapacityTypeLabelKey] = g.choice.capacityType
	spec := g.pool.Spec.Template.Spec
	taints := slices.Concat(spec.Taints, spec.StartupTaints)
	taints = append(taints, karpenter.UnregisteredTaint())
	return boot{
		cluster: g.cluster, kubelet: g.class.Spec.Kubelet, maxPods: v.maxPods, labels: labels, taints: taints,
		instanceStore: g.config.InstanceStorePolicy, custom: value(g.class.Spec.UserData),
	}
}

// templateName hashes the content, so that equal templates are one and a changed
// one is another.
func templateName(template cloud.Template) (string, error) {
	template.Name = ""
	text, err := json.Marshal(template)
	if err != nil {
		return "", fault.E("naming a launch template", fault.Bug, err)
	}
	return templatePrefix + event.DeriveID("template", event.Cluster{}, string(text)), nil
}

func instanceProfile(class *karpenter.EC2NodeClass) (string, error) {
	if name := value(class.Spec.InstanceProfile); name != "" {
		return name, nil
	}
	if class.Status.InstanceProfile == "" {
		return "", fault.F("choosing the instance profile", fault.Invalid, "EC2NodeClass %s has none yet", class.Name).
			WithHint("see its condition %s", karpenter.ConditionTypeInstanceProfileReady)
	}
	return class.Status.InstanceProfile, nil
}

func securityGroups(class *karpenter.EC2NodeClass) []string {
	var out []string
	for _, group := range class.Status.SecurityGroups {
		out = append(out, group.ID)
	}
	return out
}

func interfaces(class *karpenter.EC2NodeClass) []cloud.NetworkInterface {
	var out []cloud.NetworkInterface
	for _, i := range class.Spec.NetworkInterfaces {
		out = append(out, cloud.NetworkInterface{Card: i.NetworkCardIndex, Device: i.DeviceIndex, Kind: string(i.InterfaceType)})
	}
	return out
}

func connections(class *karpenter.EC2NodeClass) *cloud.ConnectionTracking {
	c := class.Spec.ConnectionTracking
	if c == nil {
		return nil
	}
	return &cloud.ConnectionTracking{TCPEstablished: c.TCPEstablishedTimeout, UDPStream: c.UDPStreamTimeout, UDP: c.UDPTimeout}
}

func cpu(class *karpenter.EC2NodeClass) *cloud.CPUOptions {
	if class.Spec.CPUOptions == nil {
		return nil
	}
	return &cloud.CPUOptions{NestedVirtualization: value(class.Spec.CPUOptions.NestedVirtualization)}
}

func placement(class *karpenter.EC2NodeClass) *cloud.Placement {
	selector := class.Spec.PlacementGroupSelector
	if selector == nil {
		return nil
	}
	return &cloud.Placement{Group: value(selector.Name), GroupID: value(selector.ID)}
}
