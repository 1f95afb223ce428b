package convert

import (
	"encoding/json"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// convertNodeClass converts an AWSNodeTemplate or an EC2NodeClass of any version.
func (c *converter) convertNodeClass(o *object) {
	template := o.kind == "AWSNodeTemplate"
	c.setHeader(o, cluster.NodeClasses)
	version := aliasVersion(o)
	c.cleanMetadata(o)
	spec := o.root.mapping("spec")
	if spec == nil {
		return // Reading the result names the wrong type.
	}
	if hasAny(spec, "subnetSelector", "securityGroupSelector", "amiSelector", "launchTemplate") && spec.get("amiSelectorTerms") == nil {
		template, o.old = true, true // An AWSNodeTemplate whose header alone was changed.
	}
	c.convertClassSpec(classSpec{c, o, spec, "spec", template, version})
}

// classSpec is the spec of an EC2NodeClass that is converted.
type classSpec struct {
	*converter
	o    *object
	spec *node
	// path is where the spec was in the input.
	path string
	// template is set for fields of v1alpha1, which has other defaults.
	template bool
	// version is that of the images' alias.
	version string
}

func (c *converter) convertClassSpec(s classSpec) {
	for _, key := range []string{"apiVersion", "kind"} {
		s.drop(key, "removed: a provider has no "+key+" since v1beta1", "", Converted)
	}
	s.drop("launchTemplate", "removed: launch templates are not supported since v1beta1",
		"write its image, user data, security groups, block devices and instance profile into the EC2NodeClass", Unrepaired)
	s.drop("licenseConfigurations", "removed: not supported", "", Unrepaired)
	s.rename("associatePublicIpAddress", "associatePublicIPAddress")
	s.convertSelector("subnetSelector", "subnetSelectorTerms")
	s.convertSelector("securityGroupSelector", "securityGroupSelectorTerms")
	s.convertImages()
	s.convertMetadataOptions()
	s.removeTags()
	s.removeRuntime(s.spec.get("kubelet"), s.path+".kubelet")
	s.assumeMissing()
}

func (s classSpec) at(key string) string { return s.path + "." + key }

func (s classSpec) drop(key, text, remedy string, severity RemarkSeverity) {
	if e := s.spec.take(key); e != nil {
		s.remarkEntry(s.o, severity, e, s.at(key), text, remedy)
	}
}

func (s classSpec) rename(key, name string) {
	if e := s.spec.entry(key); e != nil && s.spec.entry(name) == nil {
		e.key = name
		s.remarkEntry(s.o, Converted, e, s.at(key), "is now spec."+name, "")
	}
}

// removeRuntime removes the container runtime from the settings of a kubelet.
func (c *converter) removeRuntimeOf(o *object, kubelet *node, path string) {
	if kubelet == nil || kubelet.kind != mappingNode {
		return
	}
	if e := kubelet.take("containerRuntime"); e != nil {
		c.remarkEntry(o, Converted, e, path+".containerRuntime", "removed: containerd is the only runtime", "")
	}
}

func (s classSpec) removeRuntime(kubelet *node, path string) { s.removeRuntimeOf(s.o, kubelet, path) }

// convertMetadataOptions writes the defaults of older versions, because v1 has others.
func (s classSpec) convertMetadataOptions() {
	if !s.o.old {
		return
	}
	e := s.spec.entry("metadataOptions")
	const hops, tokens = "httpPutResponseHopLimit", "httpTokens"
	switch {
	case e.isEmpty():
		s.spec.take("metadataOptions")
		s.spec.add(newEntry("metadataOptions", newMapping(newEntry(hops, number("2")))))
		s.remark(s.o, Converted, 0, 0, s.at("metadataOptions"), "missing: "+hops+" is 2 as before, because the default of v1 is 1", "")
	case e.value.kind != mappingNode:
	case s.template:
		// EC2's own defaults applied to the rest of given options.
		if e.value.get(tokens).isNull() {
			e.value.set(tokens, newScalar("optional"))
			s.remarkEntry(s.o, Check, e, s.at("metadataOptions."+tokens), "missing: it is optional as before, because the default of v1 is required", "prefer required, which demands IMDSv2")
		}
	case e.value.get(hops).isNull():
		e.value.set(hops, number("2"))
		s.remarkEntry(s.o, Converted, e, s.at("metadataOptions."+hops), "missing: it is 2 as before, because the default of v1 is 1", "")
	}
}

func number(text string) *node { return newScalar(json.Number(text)) }

// removeTags removes the tags that Joist or AWS sets.
func (s classSpec) removeTags() {
	tags := s.spec.get("tags")
	for _, key := range sortedMappingKeys(tags) {
		switch {
		case karpenter.IsRestrictedTag(key):
			s.remarkEntry(s.o, Converted, tags.take(key), s.at("tags"), key+" removed: Joist sets this tag", "")
		case strings.HasPrefix(key, "aws:"):
			s.remarkEntry(s.o, Converted, tags.take(key), s.at("tags"), key+" removed: AWS reserves tags with the prefix aws:", "")
		}
	}
	if tags != nil && tags.changed && tags.kind == mappingNode && len(tags.entries) == 0 {
		s.spec.take("tags")
	}
}

// assumeMissing adds required fields that an older version did not require, or took from Karpenter's settings.
func (s classSpec) assumeMissing() {
	if !s.o.old {
		return
	}
	if s.spec.get("role").isNull() && s.spec.get("instanceProfile").isNull() {
		s.spec.take("role")
		s.spec.take("instanceProfile")
		if s.profile != "" {
			s.profileUsed = true
			s.spec.add(newText("instanceProfile", s.profile))
			s.remark(s.o, Converted, 0, 0, s.at("instanceProfile"), "missing: it is defaultInstanceProfile of Karpenter's settings", "")
		} else {
			s.spec.add(newText("role", "KarpenterNodeRole-"+s.clusterName()))
			s.remark(s.o, Check, 0, 0, s.at("role"), "missing: assumes the role of Karpenter's getting started guide", "check the IAM role of the nodes, or write instanceProfile")
		}
	}
	for _, key := range []string{"subnetSelectorTerms", "securityGroupSelectorTerms"} {
		if terms := s.spec.get(key); terms.isNull() || terms.kind == listNode && len(terms.entries) == 0 {
			s.spec.take(key)
			s.spec.add(newEntry(key, newList(newMapping(newEntry("tags", newMapping(newText("karpenter.sh/discovery", s.clusterName())))))))
			s.remark(s.o, Check, 0, 0, s.at(key), "missing: assumes the tag of Karpenter's getting started guide", "check the tag, or write tags or ids of your own")
		}
	}
}

// convertProvider writes the inline provider of a Provisioner as an EC2NodeClass of the same name.
func (m mover) convertProvider() {
	e := m.spec.entry("provider")
	if e == nil {
		return
	}
	template := m.template("spec")
	if !template.get("nodeClassRef").isNull() {
		m.remarkEntry(m.o, Unrepaired, e, "spec.provider", "providerRef is set, too", "remove one of them")
		return
	}
	m.spec.take("provider")
	provider := e.value.clone()
	if e.value.isNull() {
		provider = newMapping()
	}
	name := m.freeName(m.o.name())
	class := &object{
		root:       newMapping(newText("apiVersion", cluster.NodeClasses.APIVersion()), newText("kind", "EC2NodeClass"), newEntry("metadata", newMapping(newText("name", name))), newEntry("spec", provider)),
		apiVersion: cluster.NodeClasses.APIVersion(), kind: "EC2NodeClass", section: m.o.section, old: true, added: true,
	}
	class.root.line, class.root.column = max(1, e.first), e.column
	m.o.section.objects = append(m.o.section.objects, class)
	m.remarkEntry(m.o, Converted, e, "spec.provider", "is now the EC2NodeClass "+name, "")
	if provider.kind == mappingNode {
		m.convertClassSpec(classSpec{m.converter, class, provider, "spec.provider", true, "latest"})
	}
	class.old = false
	template.set("nodeClassRef", newMapping(newText("group", awsGroup), newText("kind", "EC2NodeClass"), newText("name", name)))
}

// freeName returns a name that no EC2NodeClass of the files has.
func (c *converter) freeName(name string) string {
	taken := map[string]bool{}
	c.eachObject(func(o *object) {
		if o.isClass() {
			taken[o.name()] = true
		}
	})
	for taken[name] {
		name += "-2"
	}
	return name
}
