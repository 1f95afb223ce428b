package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/kubelet"
)

func (in *validation) checkNodeClass(c *karpenter.EC2NodeClass) {
	spec := &c.Spec
	in.checkIdentity(spec)
	in.checkImages(c)
	if len(spec.SubnetSelectorTerms) == 0 {
		in.report("spec.subnetSelectorTerms", "missing: name at least one subnet by tags or id")
	}
	if len(spec.SecurityGroupSelectorTerms) == 0 {
		in.report("spec.securityGroupSelectorTerms", "missing: name at least one security group by tags, id or name")
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Tags)) {
		if karpenter.IsRestrictedTag(key) {
			in.report(joinPath("spec.tags", key), "Joist sets this tag: remove it")
		}
	}
	in.checkKubelet(c)
	in.checkBlockDevices(spec.BlockDeviceMappings)
}

// checkIdentity requires exactly one of role and instance profile.
func (in *validation) checkIdentity(spec *karpenter.EC2NodeClassSpec) {
	switch {
	case spec.Role != "" && spec.InstanceProfile != nil:
		in.report("spec.instanceProfile", "role and instanceProfile exclude each other: keep role if Joist should create the profile, or instanceProfile for an existing one")
	case spec.Role == "" && spec.InstanceProfile == nil:
		in.report("spec.role", "missing: write the nodes' IAM role, or an instanceProfile")
	}
}

func (in *validation) checkImages(c *karpenter.EC2NodeClass) {
	spec := &c.Spec
	if len(spec.AMISelectorTerms) == 0 {
		in.report("spec.amiSelectorTerms", "missing: write for example [{alias: al2023@latest}]")
	}
	aliased := false
	for i, term := range spec.AMISelectorTerms {
		path := fmt.Sprintf("spec.amiSelectorTerms[%d]", i)
		if term.Alias != "" {
			aliased = true
			if _, err := karpenter.ParseAlias(term.Alias); err != nil {
				in.report(path+".alias", "%v", err)
			}
			if len(spec.AMISelectorTerms) > 1 {
				in.report(path+".alias", "an alias must be the only term: remove the other terms")
			}
		}
		if term.Alias == "" && term.ID == "" && term.Name == "" && term.SSMParameter == "" && len(term.Tags) == 0 {
			in.report(path, "the term selects nothing: write alias, id, name, ssmParameter or tags")
		}
	}
	families := []string{"AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"}
	switch {
	case spec.AMIFamily != nil:
		in.checkWord("spec.amiFamily", *spec.AMIFamily, families, map[string]string{
			"Ubuntu": `: removed in v1; use Custom with your own userData`,
		})
	case !aliased && len(spec.AMISelectorTerms) > 0:
		in.report("spec.amiFamily", "missing: images without an alias need a family")
	}
}

// checkKubelet reports what the condition ValidationSucceeded would report, at the field.
func (in *validation) checkKubelet(c *karpenter.EC2NodeClass) {
	const path = "spec.kubelet"
	settings := c.Spec.Kubelet
	place := func(field, key string) string {
		switch {
		case field == "":
			return path
		case key == "":
			return joinPath(path, field)
		}
		return joinPath(joinPath(path, field), key)
	}
	for _, err := range kubelet.CheckRules(settings) {
		in.report(place(err.Field, err.Key), "%s", err.Message)
	}
	parsed, err := settings.Parse()
	if err != nil {
		return // A value is not of its type, or a rule reports it.
	}
	for _, err := range expression.Check(parsed) {
		in.report(place(err.Field, err.Key), "%v", err.Err)
	}
	if family, err := c.AMIFamily(); err == nil {
		if err := kubelet.CheckFamily(family, settings); err != nil {
			in.report(path, "%s: remove them, or use AL2023", strings.TrimPrefix(err.Error(), path+" "))
		}
	}
}

func (in *validation) checkBlockDevices(mappings []karpenter.BlockDeviceMapping) {
	roots := 0
	for i, m := range mappings {
		path := fmt.Sprintf("spec.blockDeviceMappings[%d]", i)
		if m.RootVolume {
			if roots++; roots == 2 {
				in.report(path+".rootVolume", "another device is already the root volume")
			}
		}
		if m.EBS == nil {
			continue
		}
		if m.EBS.VolumeSize == nil && m.EBS.SnapshotID == nil {
			in.report(path+".ebs", "volumeSize or snapshotID is missing")
		}
		if m.EBS.VolumeType != nil {
			in.checkWord(path+".ebs.volumeType", *m.EBS.VolumeType, []string{"standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"}, nil)
		}
	}
}
