package convert

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// autoScalingGroup is a group in the output of `aws autoscaling describe-auto-scaling-groups`.
type autoScalingGroup struct {
	Name                    string `json:"AutoScalingGroupName"`
	ARN                     string `json:"AutoScalingGroupARN"`
	MinSize, MaxSize        int
	AvailabilityZones       []string
	VPCZoneIdentifier       string
	Tags                    []awsTag
	LaunchTemplate          *templateReference
	LaunchConfigurationName string
	MixedInstancesPolicy    *mixedInstancesPolicy
	Instances               []struct {
		InstanceType, AvailabilityZone string
	}
	MaxInstanceLifetime int
}

// template returns the reference to the group's launch template, or nil.
func (g autoScalingGroup) template() *templateReference {
	if g.MixedInstancesPolicy != nil {
		return &g.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification
	}
	return g.LaunchTemplate
}

// mixedInstancesPolicy has the instance types of a group and its shares of on-demand and spot instances.
type mixedInstancesPolicy struct {
	LaunchTemplate struct {
		LaunchTemplateSpecification templateReference
		Overrides                   []struct {
			InstanceType, WeightedCapacity string
			InstanceRequirements           map[string]json.RawMessage
		}
	}
	InstancesDistribution struct {
		OnDemandBaseCapacity                int
		OnDemandPercentageAboveBaseCapacity *int
		SpotMaxPrice                        string
	}
}

type awsTag struct {
	Key, Value        string
	PropagateAtLaunch *bool
}

type templateReference struct {
	LaunchTemplateID   string `json:"LaunchTemplateId"`
	LaunchTemplateName string
	Version            string
	ID                 string `json:"id"`
	Name               string `json:"name"`
}

func (r *templateReference) keys() []string {
	if r == nil {
		return nil
	}
	return []string{r.LaunchTemplateID, r.LaunchTemplateName, r.ID, r.Name}
}

// managedGroup is the output of `aws eks describe-nodegroup`.
type managedGroup struct {
	NodegroupName, ClusterName, NodeRole, CapacityType, AMIType string
	NodegroupARN                                                string
	InstanceTypes, Subnets                                      []string
	DiskSize                                                    int
	Labels, Tags                                                map[string]string
	Taints                                                      []struct{ Key, Value, Effect string }
	ScalingConfig                                               struct{ MinSize, MaxSize int }
	LaunchTemplate                                              *templateReference
	RemoteAccess                                                *struct{ EC2SSHKey string }
	Resources                                                   struct {
		AutoScalingGroups         []struct{ Name string }
		RemoteAccessSecurityGroup string
	}
}

// launchTemplate is a version in the output of `aws ec2 describe-launch-template-versions`.
type launchTemplate struct {
	LaunchTemplateID   string `json:"LaunchTemplateId"`
	LaunchTemplateName string
	DefaultVersion     bool
	VersionNumber      int
	LaunchTemplateData struct {
		ImageID               string `json:"ImageId"`
		InstanceType          string
		KeyName, UserData     string
		SecurityGroupIDs      []string `json:"SecurityGroupIds"`
		NetworkInterfaces     []struct{ Groups []string }
		IamInstanceProfile    *struct{ Name, Arn string }
		InstanceMarketOptions *struct{ MarketType string }
		Monitoring            *struct{ Enabled bool }
		MetadataOptions       map[string]any
		BlockDeviceMappings   []struct {
			DeviceName string
			EBS        *blockDevice `json:"Ebs"`
		}
		TagSpecifications []struct {
			ResourceType string
			Tags         []awsTag
		}
	}
}

// blockDevice is a disk of a launch template.
type blockDevice struct {
	VolumeSize, IOPS, Throughput     int
	VolumeType, KmsKeyID, SnapshotID string
	Encrypted, DeleteOnTermination   *bool
}

// groupDocument is one answer of the AWS CLI.
type groupDocument struct {
	AutoScalingGroups      []autoScalingGroup
	Nodegroup              *managedGroup
	LaunchTemplateVersions []launchTemplate
}

// nodeGroups are the groups of all files.
type nodeGroups struct {
	scaling   []found[autoScalingGroup]
	managed   []found[managedGroup]
	templates []launchTemplate
	// seen are the groups that were read.
	seen map[string]bool
	// clusters are the clusters that the files name, sorted, and cluster is the one whose groups are converted.
	// It is empty if no option names it and the files name none or several.
	clusters []string
	cluster  string
	// names are the names of NodePools and EC2NodeClasses, with the group or the object that has each.
	names map[string]string
}

// found is a group with the section that it is in.
type found[T any] struct {
	group   T
	section *section
}

// answerKeys are the keys of the AWS CLI's answers.
var answerKeys = []string{"AutoScalingGroups", "nodegroup", "LaunchTemplateVersions"}

// accept reads a document of the AWS CLI; it returns false for other documents.
func (g *nodeGroups) accept(s *section) bool {
	if !hasAny(s.tree.root, answerKeys...) {
		return false
	}
	return g.decode([]byte(s.tree.root.fingerprint()), s)
}

func (g *nodeGroups) decode(text []byte, s *section) bool {
	var d groupDocument
	if json.Unmarshal(text, &d) != nil {
		return false
	}
	// A group that several answers have is one group.
	for _, group := range d.AutoScalingGroups {
		if g.isFirst("scaling", group.ARN, group.Name) {
			g.scaling = append(g.scaling, found[autoScalingGroup]{group, s})
		}
	}
	if m := d.Nodegroup; m != nil && g.isFirst("managed", m.NodegroupARN, m.ClusterName, m.NodegroupName) {
		g.managed = append(g.managed, found[managedGroup]{*m, s})
	}
	g.templates = append(g.templates, d.LaunchTemplateVersions...)
	return true
}

// isFirst reports whether no earlier group had the same identity.
func (g *nodeGroups) isFirst(identity ...string) bool {
	key := strings.Join(identity, "\x00")
	if g.seen[key] {
		return false
	}
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	g.seen[key] = true
	return true
}

// acceptStream reads a file with several JSON answers of the AWS CLI, as a loop in a shell writes it.
func (g *nodeGroups) acceptStream(s *section, data []byte) bool {
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	var texts []json.RawMessage
	for decoder.More() {
		var text json.RawMessage
		var keys map[string]json.RawMessage
		if decoder.Decode(&text) != nil || json.Unmarshal(text, &keys) != nil {
			return false
		}
		known := false
		for _, key := range answerKeys {
			known = known || keys[key] != nil
		}
		if !known {
			return false
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		if !g.decode(text, s) {
			return false
		}
	}
	return len(texts) > 0
}

// template returns the launch template that a reference means, or nil.
func (g *nodeGroups) template(r *templateReference) *launchTemplate {
	var best *launchTemplate
	for i := range g.templates {
		t := &g.templates[i]
		for _, key := range r.keys() {
			if key == "" || key != t.LaunchTemplateID && key != t.LaunchTemplateName {
				continue
			}
			exact := strconv.Itoa(t.VersionNumber) == r.Version || r.Version == "$Default" && t.DefaultVersion
			if best == nil || exact || t.VersionNumber > best.VersionNumber && strconv.Itoa(best.VersionNumber) != r.Version {
				best = t
			}
		}
	}
	return best
}

// clustersOfTags returns the clusters that the tags of a group or of its instances name.
func clustersOfTags(tags []awsTag) (clusters []string) {
	for _, tag := range tags {
		if tag.Key == "eks:cluster-name" || tag.Key == "alpha.eksctl.io/cluster-name" {
			clusters = append(clusters, tag.Value)
		}
		for _, prefix := range []string{"kubernetes.io/cluster/", "k8s.io/cluster/", "k8s.io/cluster-autoscaler/"} {
			if name, found := strings.CutPrefix(tag.Key, prefix); found && name != "enabled" && !strings.Contains(name, "/") {
				clusters = append(clusters, name)
			}
		}
	}
	return sortedSet(clusters)
}

// clustersOf returns the clusters that a group's tags name, or the tags that its launch template gives the instances.
func (g *nodeGroups) clustersOf(group autoScalingGroup) []string {
	if clusters := clustersOfTags(group.Tags); len(clusters) > 0 {
		return clusters
	}
	t := g.template(group.template())
	if t == nil {
		return nil
	}
	for _, spec := range t.LaunchTemplateData.TagSpecifications {
		if spec.ResourceType == "instance" {
			return clustersOfTags(spec.Tags)
		}
	}
	return nil
}

// chooseCluster chooses the cluster whose groups are converted: the named one or, if none is named, that of the managed node groups, or
// that of the Auto Scaling groups.
func (g *nodeGroups) chooseCluster(name string) {
	if g.cluster = name; name != "" {
		return
	}
	for _, f := range g.managed {
		g.clusters = append(g.clusters, f.group.ClusterName)
	}
	g.clusters = slices.DeleteFunc(sortedSet(g.clusters), func(name string) bool { return name == "" })
	if len(g.clusters) == 0 {
		for _, f := range g.scaling {
			g.clusters = append(g.clusters, g.clustersOf(f.group)...)
		}
		g.clusters = sortedSet(g.clusters)
	}
	if len(g.clusters) == 1 {
		g.cluster = g.clusters[0]
	}
}

// admitGroup reports whether a group is one of the cluster whose groups are converted. It writes a remark about another group: as a
// NodePool it would get the subnets, roles and types of another cluster, or of instances that are no nodes.
func (c *converter) admitGroup(s *section, name string, clusters []string) bool {
	if c.groups.cluster != "" && slices.Contains(clusters, c.groups.cluster) {
		return true
	}
	p, of := c.newPlan(s, name), strings.Join(clusters, ", ")
	switch {
	case len(clusters) == 0:
		p.remark(Unrepaired, "group", "is not converted: no tag names its cluster, so that its instances may be no nodes",
			"if they are nodes of the cluster, add the tag kubernetes.io/cluster/"+p.clusterName()+" with the value owned to the group")
	case c.groups.cluster == "":
		p.remark(Unrepaired, "group", "is not converted: it belongs to "+of+", and the files have groups of "+strings.Join(c.groups.clusters, ", "), "name one cluster with --cluster-name")
	default:
		p.remark(Check, "group", "is not converted: it belongs to "+of+", and the groups of "+c.groups.cluster+" are converted", "name that cluster with --cluster-name to convert it instead")
	}
	return false
}

// convertNodeGroups writes the groups of one cluster in all files as NodePools and EC2NodeClasses.
func (c *converter) convertNodeGroups() {
	c.groups.chooseCluster(c.options.ClusterName)
	c.groups.names = map[string]string{}
	c.eachObject(func(o *object) {
		if o.isPool() || o.isClass() {
			c.groups.names[o.name()] = "an object of the files"
		}
	})
	covered := map[string]bool{}
	scaling := map[string]autoScalingGroup{}
	for _, f := range c.groups.scaling {
		scaling[f.group.Name] = f.group
	}
	out := map[*section][]string{}
	classes := map[string]string{}
	emit := func(s *section, p *groupPlan) {
		out[s] = append(out[s], c.printPlan(p, classes)...)
	}
	// left are the sections with a group that is not converted.
	left := map[*section]bool{}
	for _, f := range c.groups.managed {
		for _, g := range f.group.Resources.AutoScalingGroups {
			covered[g.Name] = true
		}
		if f.group.ClusterName != "" && !c.admitGroup(f.section, f.group.NodegroupName, []string{f.group.ClusterName}) {
			left[f.section] = true
			continue
		}
		emit(f.section, c.planManaged(f, scaling))
	}
	for _, f := range c.groups.scaling {
		clusters := c.groups.clustersOf(f.group)
		switch {
		case covered[f.group.Name] || c.isManaged(f.group, clusters):
		case c.admitGroup(f.section, f.group.Name, clusters):
			emit(f.section, c.planScaling(f))
		default:
			left[f.section] = true
		}
	}
	c.replaceGroups(out, left)
}

// replaceGroups replaces the sections of groups by the documents written for them, or by a comment.
func (c *converter) replaceGroups(out map[*section][]string, left map[*section]bool) {
	for s, documents := range out {
		s.replaced = strings.Join(documents, "---\n")
		c.readBack(s)
	}
	for _, f := range c.files {
		for _, s := range f.sections {
			switch {
			case s.kind != groupSection || s.replaced != "":
			case left[s]:
				s.replaced = "# None of its groups is converted: the remarks say why.\n"
			default:
				s.replaced = "# Its groups are in other files.\n"
			}
		}
	}
}

// isManaged reports whether a group of some clusters belongs to a managed node group of the files.
func (c *converter) isManaged(g autoScalingGroup, clusters []string) bool {
	for _, tag := range g.Tags {
		if tag.Key != "eks:nodegroup-name" {
			continue
		}
		for _, f := range c.groups.managed {
			if f.group.NodegroupName == tag.Value && (len(clusters) == 0 || f.group.ClusterName == "" || slices.Contains(clusters, f.group.ClusterName)) {
				return true
			}
		}
	}
	return false
}

// readBack reads the new documents strictly.
func (c *converter) readBack(s *section) {
	if _, err := manifest.Read(s.file.name, []byte(s.replaced)); err != nil {
		c.remarks = append(c.remarks, Remark{manifest.Place{File: s.file.name, Line: s.before + 1}, Unrepaired, "", "the NodePools and EC2NodeClasses of the groups have mistakes: " + err.Error(), "correct them in the result"})
	}
}
