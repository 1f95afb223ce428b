package convert

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// groupPlan is a node group on its way to a NodePool and an EC2NodeClass.
type groupPlan struct {
	*converter
	section *section
	name    string
	// object is the name of the group's NodePool.
	object string
	// line is the line of the file with the name.
	line  int
	types []string
	// needs chooses instance types by attributes.
	needs        map[string]json.RawMessage
	capacity     []string
	zones        []string
	os, arch     string
	labels, tags map[string]string
	taints       []*node
	least, most  int
	expireAfter  string
	consolidate  string
	class        *node
	restricted   []string
}

// clusterAutoscalerTag is the prefix of the tags with which Cluster Autoscaler describes the nodes of an empty group.
const clusterAutoscalerTag = "k8s.io/cluster-autoscaler/node-template/"

func (p *groupPlan) remark(severity RemarkSeverity, what, text, remedy string) {
	p.remarks = append(p.remarks, Remark{manifest.Place{File: p.section.file.name, Line: p.line}, severity, p.name + "." + what, text, remedy})
}

func (c *converter) newPlan(s *section, name string) *groupPlan {
	line := s.before + 1
	if at := strings.Index(s.raw, `"`+name+`"`); at >= 0 {
		line += strings.Count(s.raw[:at], "\n")
	}
	return &groupPlan{
		converter: c, section: s, name: name, object: objectName(name, objectNameMax), line: line, os: "linux", labels: map[string]string{}, tags: map[string]string{},
		expireAfter: "Never", consolidate: "10m", class: newMapping(),
	}
}

// planManaged plans a managed node group, with the Auto Scaling groups behind it.
func (c *converter) planManaged(f found[managedGroup], scaling map[string]autoScalingGroup) *groupPlan {
	g := f.group
	p := c.newPlan(f.section, g.NodegroupName)
	p.claimName()
	p.types, p.least, p.most = g.InstanceTypes, g.ScalingConfig.MinSize, g.ScalingConfig.MaxSize
	p.capacity = []string{"on-demand"}
	switch g.CapacityType {
	case "SPOT":
		p.capacity = []string{"spot"}
	case "CAPACITY_BLOCK":
		p.capacity = []string{"reserved"}
		p.remark(Unrepaired, "capacityType", "a capacity block is selected by the EC2NodeClass", "write spec.capacityReservationSelectorTerms")
	}
	for key, value := range g.Labels {
		p.addLabel(key, value)
	}
	for _, t := range g.Taints {
		p.addTaint(t.Key, t.Value, strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(t.Effect, "PREFER_NO_SCHEDULE", "PreferNoSchedule"), "NO_SCHEDULE", "NoSchedule"), "NO_EXECUTE", "NoExecute"))
	}
	for key, value := range g.Tags {
		p.addTag(key, value)
	}
	for _, behind := range g.Resources.AutoScalingGroups {
		p.addGroupTags(scaling[behind.Name].Tags)
		p.zones = scaling[behind.Name].AvailabilityZones
	}
	t := c.groups.template(g.LaunchTemplate)
	if g.LaunchTemplate != nil && t == nil {
		p.nameTemplate(g.LaunchTemplate)
	}
	p.addImages(g.AMIType, t)
	p.addIdentity(path.Base(g.NodeRole), g.NodeRole != "", t)
	p.addSubnets(g.Subnets)
	p.addSecurityGroups(t, g.Resources.RemoteAccessSecurityGroup)
	p.addDisks(g.DiskSize, g.AMIType, t)
	p.addRest(t)
	if g.RemoteAccess != nil && g.RemoteAccess.EC2SSHKey != "" {
		p.remark(Check, "remoteAccess", "the SSH key "+g.RemoteAccess.EC2SSHKey+" is not kept: nodes have no key pair", "use SSM Session Manager, or add the key in userData")
	}
	p.remark(Check, "labels", "pods that select eks.amazonaws.com/nodegroup or eks.amazonaws.com/capacityType do not fit the new nodes", "select karpenter.sh/nodepool: "+p.object+" or karpenter.sh/capacity-type instead")
	return p
}

// planScaling plans an Auto Scaling group of self-managed nodes.
func (c *converter) planScaling(f found[autoScalingGroup]) *groupPlan {
	g := f.group
	p := c.newPlan(f.section, g.Name)
	p.claimName()
	p.least, p.most, p.zones = g.MinSize, g.MaxSize, g.AvailabilityZones
	p.addGroupTags(g.Tags)
	reference := g.template()
	p.capacity = []string{"on-demand"}
	if g.MixedInstancesPolicy != nil {
		p.addMixedPolicy(g.MixedInstancesPolicy)
	}
	t := c.groups.template(reference)
	switch {
	case reference == nil && g.LaunchConfigurationName != "":
		p.remark(Check, "LaunchConfigurationName", "the content of "+g.LaunchConfigurationName+" is not read: image, user data, security groups, disks and instance profile are assumed",
			"write them into the EC2NodeClass; `aws autoscaling describe-launch-configurations` prints them")
	case t == nil:
		p.nameTemplate(reference)
	default:
		p.addTemplateInstances(t)
	}
	for _, i := range g.Instances {
		if p.lacksTypes() {
			p.types = []string{i.InstanceType}
		}
	}
	if g.MaxInstanceLifetime > 0 {
		p.expireAfter = fmt.Sprintf("%ds", g.MaxInstanceLifetime)
	}
	p.addImages("", t)
	p.addIdentity("", false, t)
	p.addSubnets(splitCommas(g.VPCZoneIdentifier))
	p.addSecurityGroups(t, "")
	p.addDisks(0, "", t)
	p.addRest(t)
	return p
}

// addMixedPolicy keeps the instance types and the capacity types of a group with several.
func (p *groupPlan) addMixedPolicy(policy *mixedInstancesPolicy) {
	for _, o := range policy.LaunchTemplate.Overrides {
		if o.InstanceType != "" {
			p.types = append(p.types, o.InstanceType)
		}
		if o.InstanceRequirements != nil && p.needs != nil {
			p.remark(Check, "InstanceRequirements", "only the first override is kept: a NodePool has one list of requirements", "write a NodePool for each override")
		} else if o.InstanceRequirements != nil {
			p.needs = o.InstanceRequirements
		}
		if o.WeightedCapacity != "" && o.WeightedCapacity != "1" {
			p.remark(Converted, "WeightedCapacity", "is not needed: nodes are sized by their pods", "")
		}
	}
	d := policy.InstancesDistribution
	p.addDistribution(d.OnDemandBaseCapacity, d.OnDemandPercentageAboveBaseCapacity)
	if d.SpotMaxPrice != "" {
		p.remark(Check, "SpotMaxPrice", d.SpotMaxPrice+" is not kept: the maximum is the on-demand price", "limit the cost of a NodePool with the annotation joist.sh/price-limit")
	}
}

// addTemplateInstances keeps the instance type, unless the group names others, and the capacity type of a launch template.
func (p *groupPlan) addTemplateInstances(t *launchTemplate) {
	if p.lacksTypes() && t.LaunchTemplateData.InstanceType != "" {
		p.types = []string{t.LaunchTemplateData.InstanceType}
	}
	if m := t.LaunchTemplateData.InstanceMarketOptions; m != nil && m.MarketType == "spot" {
		p.capacity = []string{"spot"}
	}
}

// lacksTypes reports whether nothing chooses instance types yet.
func (p *groupPlan) lacksTypes() bool { return len(p.types) == 0 && p.needs == nil }

func firstText(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// nameTemplate names a launch template whose content is unknown.
func (p *groupPlan) nameTemplate(r *templateReference) {
	name := "unknown"
	for _, key := range r.keys() {
		name = firstText(key, name)
		if key != "" {
			break
		}
	}
	p.remark(Check, "LaunchTemplate", "the launch template "+name+" is not in the files: its image, user data, security groups, disks and instance profile are assumed",
		"add the output of `aws ec2 describe-launch-template-versions --launch-template-id "+name+"` with -f")
}

// addDistribution converts the shares of on-demand and spot instances.
func (p *groupPlan) addDistribution(base int, percentage *int) {
	share := 100
	if percentage != nil {
		share = *percentage
	}
	switch {
	case share == 100:
		p.capacity = []string{"on-demand"}
	case share == 0 && base == 0:
		p.capacity = []string{"spot"}
	default:
		p.capacity = []string{"spot", "on-demand"}
		p.remark(Check, "InstancesDistribution", fmt.Sprintf("%d on-demand instances and %d%% of the rest cannot be kept: the cheaper capacity is launched", base, share),
			"for a fixed share write two NodePools, one for each capacity type, with limits")
	}
}

func (p *groupPlan) addGroupTags(tags []awsTag) {
	for _, tag := range tags {
		rest, described := strings.CutPrefix(tag.Key, clusterAutoscalerTag)
		kind, key, _ := strings.Cut(rest, "/")
		switch {
		case !described:
			if tag.PropagateAtLaunch == nil || *tag.PropagateAtLaunch {
				p.addTag(tag.Key, tag.Value)
			}
		case kind == "label":
			p.addLabel(key, tag.Value)
		case kind == "taint":
			at := strings.LastIndex(tag.Value, ":")
			p.addTaint(key, tag.Value[:max(0, at)], tag.Value[at+1:])
		case kind == "resources":
			p.remark(Converted, tag.Key, "is not needed: resources follow from the instance types", "")
		case key == "scaledownunneededtime":
			p.consolidate = tag.Value
		default:
			p.remark(Check, tag.Key, "="+tag.Value+" is not kept: it is an option of Cluster Autoscaler", "see spec.disruption of the NodePool")
		}
	}
}

// addTag keeps a tag of the instances, unless it is one of Cluster Autoscaler, EKS or AWS.
func (p *groupPlan) addTag(key, value string) {
	for _, prefix := range []string{"kubernetes.io/cluster/", "k8s.io/cluster", "eks:", "aws:", "alpha.eksctl.io/"} {
		if strings.HasPrefix(key, prefix) {
			return
		}
	}
	if key != "Name" && !karpenter.IsRestrictedTag(key) {
		p.tags[key] = value
	}
}

func (p *groupPlan) addLabel(key, value string) {
	switch {
	case key == corev1.LabelInstanceTypeStable || key == "beta.kubernetes.io/instance-type":
		if len(p.types) == 0 {
			p.types = []string{value}
		}
	case key == corev1.LabelTopologyZone || key == "failure-domain.beta.kubernetes.io/zone":
		p.zones = []string{value}
	case key == corev1.LabelArchStable || key == "beta.kubernetes.io/arch":
		p.arch = value
	case key == corev1.LabelOSStable || key == "beta.kubernetes.io/os":
		p.os = value
	case strings.HasPrefix(key, "eks.amazonaws.com/") || strings.HasPrefix(key, "alpha.eksctl.io/") || karpenter.ValidateTemplateLabel(key) != nil:
		p.restricted = append(p.restricted, key+"="+value)
	default:
		p.labels[key] = value
	}
}

func (p *groupPlan) addTaint(key, value, effect string) {
	t := newMapping(newText("key", key))
	if value != "" {
		t.add(newText("value", value))
	}
	t.add(newText("effect", effect))
	if !slices.ContainsFunc(p.taints, func(have *node) bool { return have.fingerprint() == t.fingerprint() }) {
		p.taints = append(p.taints, t)
	}
}

// addImages writes the images of an EKS image type, or of a launch template.
func (p *groupPlan) addImages(kind string, t *launchTemplate) {
	alias := imageAlias(kind)
	p.addPlatform(kind)
	switch {
	case alias != "":
	case t != nil && t.LaunchTemplateData.ImageID != "":
		p.addCustomImage(t)
		return
	default:
		alias = "al2023"
		p.remark(Check, "image", "unknown: assumes al2023@latest", "check the image and its architecture")
	}
	p.class.add(newEntry("amiSelectorTerms", newList(newMapping(newText("alias", alias+"@latest")))))
	if t != nil && t.LaunchTemplateData.UserData != "" {
		if data, err := base64.StdEncoding.DecodeString(t.LaunchTemplateData.UserData); err == nil {
			p.class.add(newText("userData", string(data)))
			p.remark(Check, "UserData", "kept from the launch template", "remove the part that starts the kubelet, which Joist adds")
		}
	}
}

// imageAlias returns the alias for an EKS image type, or "".
func imageAlias(kind string) string {
	for _, family := range []struct{ prefix, alias string }{
		{"AL2023", "al2023"}, {"AL2_", "al2"}, {"BOTTLEROCKET", "bottlerocket"}, {"WINDOWS_CORE_2019", "windows2019"}, {"WINDOWS_FULL_2019", "windows2019"},
		{"WINDOWS_CORE_2022", "windows2022"}, {"WINDOWS_FULL_2022", "windows2022"}, {"WINDOWS_CORE_2025", "windows2025"}, {"WINDOWS_FULL_2025", "windows2025"},
	} {
		if strings.HasPrefix(kind, family.prefix) {
			return family.alias
		}
	}
	return ""
}

// addPlatform keeps the operating system and the architecture of an EKS image type.
func (p *groupPlan) addPlatform(kind string) {
	if strings.HasPrefix(kind, "WINDOWS") {
		p.os = "windows"
	}
	if strings.Contains(kind, "ARM_64") {
		p.arch = "arm64"
	} else if kind != "" && kind != "CUSTOM" {
		p.arch = firstText(p.arch, "amd64")
	}
}

// addCustomImage writes the image of a launch template with its user data.
func (p *groupPlan) addCustomImage(t *launchTemplate) {
	data := t.LaunchTemplateData
	p.class.add(newText("amiFamily", "Custom"))
	p.class.add(newEntry("amiSelectorTerms", newList(newMapping(newText("id", data.ImageID)))))
	p.remark(Check, "ImageId", data.ImageID+" is kept with the family Custom and the user data of the launch template", "prefer an alias such as al2023@latest, which is updated")
	if script, err := base64.StdEncoding.DecodeString(data.UserData); err == nil && len(script) > 0 {
		p.class.add(newText("userData", string(script)))
	}
}

func (p *groupPlan) clusterName() string {
	return firstText(p.groups.cluster, p.converter.clusterName())
}

// addIdentity writes the role or the instance profile.
func (p *groupPlan) addIdentity(role string, known bool, t *launchTemplate) {
	if known {
		p.class.add(newText("role", role))
		return
	}
	if t != nil && t.LaunchTemplateData.IamInstanceProfile != nil {
		profile := t.LaunchTemplateData.IamInstanceProfile
		p.class.add(newText("instanceProfile", firstText(profile.Name, path.Base(profile.Arn))))
		return
	}
	p.class.add(newText("role", "KarpenterNodeRole-"+p.clusterName()))
	p.remark(Check, "role", "unknown: assumes the role of Karpenter's getting started guide", "check the IAM role of the nodes, or write instanceProfile")
}

func (p *groupPlan) addSubnets(ids []string) {
	terms := newList()
	for _, id := range ids {
		if id != "" {
			terms.entries = append(terms.entries, &entry{value: newMapping(newText("id", id))})
		}
	}
	if len(terms.entries) == 0 {
		terms = newList(newMapping(newEntry("tags", newMapping(newText("karpenter.sh/discovery", p.clusterName())))))
		p.remark(Check, "subnets", "unknown: assumes the tag karpenter.sh/discovery", "check the tag, or write ids")
	}
	p.class.add(newEntry("subnetSelectorTerms", terms))
}

func (p *groupPlan) addSecurityGroups(t *launchTemplate, remote string) {
	var ids []string
	if t != nil {
		ids = t.LaunchTemplateData.SecurityGroupIDs
		if len(ids) == 0 && len(t.LaunchTemplateData.NetworkInterfaces) > 0 {
			ids = t.LaunchTemplateData.NetworkInterfaces[0].Groups
		}
	}
	terms := newList()
	for _, id := range ids {
		terms.entries = append(terms.entries, &entry{value: newMapping(newText("id", id))})
	}
	if len(ids) == 0 {
		terms = newList(newMapping(newEntry("tags", newMapping(newText("kubernetes.io/cluster/"+p.clusterName(), "owned")))))
		p.remark(Check, "securityGroups", "unknown: assumes the groups with EKS's tag kubernetes.io/cluster/"+p.clusterName()+": owned", "check that these are the groups of the nodes, or write ids")
	}
	if remote != "" {
		terms.entries = append(terms.entries, &entry{value: newMapping(newText("id", remote))})
	}
	p.class.add(newEntry("securityGroupSelectorTerms", terms))
}

// objectNameMax is the maximum length of a NodePool's name, which is also the value of a label.
const objectNameMax = 63

var (
	objectNameRunes = regexp.MustCompile(`[^a-z0-9.-]+`)
	objectNameDots  = regexp.MustCompile(`-*\.[.-]*`)
)

// objectName returns a group's name as one of Kubernetes with at most size bytes.
func objectName(name string, size int) string {
	name = objectNameRunes.ReplaceAllString(strings.ToLower(name), "-")
	name = strings.Trim(objectNameDots.ReplaceAllString(name, "."), "-.")
	return firstText(strings.TrimRight(name[:min(len(name), size)], "-."), "node-group")
}

// claimName keeps the name of the group's objects, or adds a number if an earlier object has the name.
func (p *groupPlan) claimName() {
	first, isTaken := p.groups.names[p.object]
	for n, again := 2, isTaken; again; n++ {
		number := "-" + strconv.Itoa(n)
		p.object = objectName(p.name, objectNameMax-len(number)) + number
		_, again = p.groups.names[p.object]
	}
	p.groups.names[p.object] = "the group " + p.name
	if isTaken {
		p.remark(Check, "name", "becomes "+p.object+", because "+first+" has the name without a number", "choose another name before you apply it: the name of a NodePool cannot change")
	}
}
