package convert

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// autoScalingGroup is a group in the output of `aws autoscaling describe-auto-scaling-groups`.
type autoScalingGroup struct {
	Name                    string `json:"AutoScalingGroupName"`
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
	for _, group := range d.AutoScalingGroups {
		g.scaling = append(g.scaling, found[autoScalingGroup]{group, s})
	}
	if d.Nodegroup != nil {
		g.managed = append(g.managed, found[managedGroup]{*d.Nodegroup, s})
	}
	g.templates = append(g.templates, d.LaunchTemplateVersions...)
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

// convertNodeGroups writes the groups of all files as NodePools and EC2NodeClasses.
func (c *converter) convertNodeGroups() {
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
	for _, f := range c.groups.managed {
		p := c.planManaged(f, scaling)
		for _, g := range f.group.Resources.AutoScalingGroups {
			covered[g.Name] = true
		}
		emit(f.section, p)
	}
	for _, f := range c.groups.scaling {
		if !covered[f.group.Name] && !c.isManaged(f.group) {
			emit(f.section, c.planScaling(f))
		}
	}
	for s, documents := range out {
		s.replaced = strings.Join(documents, "---\n")
		c.readBack(s)
	}
	for _, f := range c.files {
		for _, s := range f.sections {
			if s.kind == groupSection && s.replaced == "" {
				s.replaced = "# Its groups are in other files.\n"
			}
		}
	}
}

// isManaged reports whether a group belongs to a managed node group of the files.
func (c *converter) isManaged(g autoScalingGroup) bool {
	for _, tag := range g.Tags {
		if tag.Key != "eks:nodegroup-name" {
			continue
		}
		for _, f := range c.groups.managed {
			if f.group.NodegroupName == tag.Value {
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
