package convert

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// addDisks writes the disks of a launch template or, if it has none, one of the group's size in GiB.
func (p *groupPlan) addDisks(size int, kind string, t *launchTemplate) {
	disks := listDisks(t)
	if size > 0 && len(disks) == 0 {
		disks = append(disks, newDisk(rootDevice(kind), newMapping(newText("volumeSize", fmt.Sprintf("%dGi", size)), newText("volumeType", "gp3"))))
	}
	if len(disks) > 0 {
		p.class.add(newEntry("blockDeviceMappings", newList(disks...)))
	}
}

// listDisks returns the disks of a launch template.
func listDisks(t *launchTemplate) (out []*node) {
	if t == nil {
		return nil
	}
	for _, d := range t.LaunchTemplateData.BlockDeviceMappings {
		if d.EBS != nil {
			out = append(out, newDisk(d.DeviceName, describeDisk(d.EBS)))
		}
	}
	return out
}

func newDisk(device string, ebs *node) *node {
	return newMapping(newText("deviceName", device), newEntry("ebs", ebs))
}

// describeDisk returns the settings that a launch template gives a disk.
func describeDisk(d *blockDevice) *node {
	ebs := newMapping()
	if d.DeleteOnTermination != nil {
		ebs.add(newText("deleteOnTermination", *d.DeleteOnTermination))
	}
	if d.Encrypted != nil {
		ebs.add(newText("encrypted", *d.Encrypted))
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"iops", d.IOPS}, {"throughput", d.Throughput}} {
		if n.value > 0 {
			ebs.add(newEntry(n.key, number(strconv.Itoa(n.value))))
		}
	}
	if d.VolumeSize > 0 {
		ebs.add(newText("volumeSize", fmt.Sprintf("%dGi", d.VolumeSize)))
	}
	for _, s := range []struct{ key, value string }{{"volumeType", d.VolumeType}, {"kmsKeyID", d.KmsKeyID}, {"snapshotID", d.SnapshotID}} {
		if s.value != "" {
			ebs.add(newText(s.key, s.value))
		}
	}
	return ebs
}

// rootDevice returns the device of the disk that an EKS image type keeps its data on.
func rootDevice(kind string) string {
	switch {
	case strings.HasPrefix(kind, "BOTTLEROCKET"):
		return "/dev/xvdb"
	case strings.HasPrefix(kind, "WINDOWS"):
		return "/dev/sda1"
	}
	return "/dev/xvda"
}

// optionNames are the metadata options of launch templates that an EC2NodeClass has.
var optionNames = map[string]string{
	"HttpEndpoint": "httpEndpoint", "HttpProtocolIpv6": "httpProtocolIPv6", "HttpPutResponseHopLimit": "httpPutResponseHopLimit", "HttpTokens": "httpTokens",
}

// addRest writes metadata options, monitoring and tags.
func (p *groupPlan) addRest(t *launchTemplate) {
	options := newMapping()
	if t != nil {
		data := t.LaunchTemplateData
		for _, key := range sortedKeys(data.MetadataOptions) {
			if name := optionNames[key]; name != "" {
				options.add(newEntry(name, optionValue(data.MetadataOptions[key])))
			}
		}
		if data.Monitoring != nil {
			p.class.add(newText("detailedMonitoring", data.Monitoring.Enabled))
		}
		if data.KeyName != "" {
			p.remark(Check, "KeyName", "the SSH key "+data.KeyName+" is not kept: nodes have no key pair", "use SSM Session Manager, or add the key in userData")
		}
		for _, spec := range data.TagSpecifications {
			for _, tag := range spec.Tags {
				if spec.ResourceType == "instance" {
					p.addTag(tag.Key, tag.Value)
				}
			}
		}
	}
	if options.get("httpPutResponseHopLimit") == nil {
		options.add(newEntry("httpPutResponseHopLimit", number("2")))
	}
	p.class.add(newEntry("metadataOptions", options))
	if len(p.tags) > 0 {
		p.class.add(newEntry("tags", textMapping(p.tags)))
	}
}

func optionValue(value any) *node {
	if f, ok := value.(float64); ok {
		return newScalar(json.Number(strconv.FormatFloat(f, 'f', -1, 64)))
	}
	return newScalar(value)
}

func textMapping(values map[string]string) *node {
	n := newMapping()
	for _, key := range sortedKeys(values) {
		n.add(newText(key, values[key]))
	}
	return n
}

// requirements returns the requirements of the NodePool.
func (p *groupPlan) requirements() *node {
	out := newList()
	add := func(key, operator string, values ...string) {
		one := newMapping(newText("key", key), newText("operator", operator))
		if len(values) > 0 {
			one.add(newEntry("values", textList(values...)))
		}
		out.entries = append(out.entries, &entry{value: one})
	}
	switch {
	case len(p.types) > 0:
		add(corev1.LabelInstanceTypeStable, "In", unique(p.types)...)
	case p.needs != nil:
		p.addAttributes(add)
	default:
		p.remark(Unrepaired, "InstanceType", "the instance types are unknown", "add the launch template with -f, or write a requirement for node.kubernetes.io/instance-type")
	}
	add(karpenter.CapacityTypeLabelKey, "In", p.capacity...)
	if len(p.zones) > 0 {
		add(corev1.LabelTopologyZone, "In", p.zones...)
	}
	if p.arch != "" {
		add(corev1.LabelArchStable, "In", p.arch)
	}
	add(corev1.LabelOSStable, "In", p.os)
	return out
}

func unique(values []string) (out []string) {
	seen := map[string]bool{}
	for _, value := range values {
		if !seen[value] {
			seen[value] = true
			out = append(out, value)
		}
	}
	return out
}

// pool returns the NodePool.
func (p *groupPlan) pool(class string) *node {
	metadata := newMapping()
	if len(p.labels) > 0 {
		metadata.add(newEntry("labels", textMapping(p.labels)))
	}
	spec := newMapping(
		newEntry("nodeClassRef", newMapping(newText("group", awsGroup), newText("kind", "EC2NodeClass"), newText("name", class))),
		newEntry("requirements", p.requirements()))
	if len(p.taints) > 0 {
		spec.add(newEntry("taints", newList(p.taints...)))
	}
	spec.add(newText("expireAfter", p.expireAfter))
	template := newMapping(newEntry("spec", spec))
	if len(metadata.entries) > 0 {
		template.insert("spec", newEntry("metadata", metadata))
	}
	body := newMapping(newEntry("template", template),
		newEntry("disruption", newMapping(newText("consolidationPolicy", string(karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized)), newText("consolidateAfter", p.consolidate))),
		newEntry("limits", newMapping(newEntry("nodes", number(strconv.Itoa(p.most))))))
	return newMapping(newText("apiVersion", cluster.NodePools.APIVersion()), newText("kind", "NodePool"),
		newEntry("metadata", newMapping(newText("name", p.object))), newEntry("spec", body))
}

// printPlan returns the NodePool and, unless an equal one exists, the EC2NodeClass of a group.
func (c *converter) printPlan(p *groupPlan, classes map[string]string) (out []string) {
	if p.least > 0 {
		p.remark(Check, "MinSize", fmt.Sprintf("%d is not kept: NodePools shrink to no nodes", p.least),
			fmt.Sprintf("for free capacity write a CapacityBuffer, for a fixed number of nodes a static NodePool with spec.replicas: %d", p.least))
	}
	if len(p.restricted) > 0 {
		p.remark(Check, "labels", strings.Join(sortedSet(p.restricted), ", ")+" are not kept: the nodes of a NodePool cannot have them", "select the nodes by another label")
	}
	key := p.class.fingerprint()
	name, known := classes[key]
	if !known {
		name = p.object
		classes[key] = name
		out = append(out, printObject(newMapping(newText("apiVersion", cluster.NodeClasses.APIVersion()), newText("kind", "EC2NodeClass"),
			newEntry("metadata", newMapping(newText("name", name))), newEntry("spec", p.class))))
	}
	p.remark(Converted, "group", "is now NodePool "+p.object+" and EC2NodeClass "+name+"; nodes never expire, as before, and the maximum size is limits.nodes", "")
	return append(out, printObject(p.pool(name)))
}

func sortedSet(values []string) []string {
	set := map[string]bool{}
	for _, value := range values {
		set[value] = true
	}
	return sortedKeys(set)
}

func printObject(n *node) string {
	return joinLines((&tree{offset: 2}).printEntries(n, 0))
}
