package convert

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// kubeletUser is a NodePool with its own settings of the kubelet.
type kubeletUser struct {
	pool *object
	// in and e are the mapping and the entry with the settings; e is nil if an annotation has them.
	in       *node
	e        *entry
	path     string
	settings *node
}

// splitKubelets moves the settings of kubelets from NodePools to EC2NodeClasses. If the NodePools of a class
// have different settings, each further setting gets a class of its own.
func (c *converter) splitKubelets() {
	classes := map[string]*object{}
	users := map[string][]kubeletUser{}
	var names []string
	c.eachObject(func(o *object) {
		switch {
		case o.isClass() && classes[o.name()] == nil:
			classes[o.name()] = o
			c.removeCompatibility(o)
			if spec := o.root.get("spec"); spec != nil && spec.get("kubelet") != nil && spec.get("kubelet").changed && len(spec.get("kubelet").entries) == 0 {
				spec.take("kubelet")
			}
		case o.isPool():
			name := o.root.textAt("spec", "template", "spec", "nodeClassRef", "name")
			if users[name] == nil {
				names = append(names, name)
			}
			users[name] = append(users[name], c.kubeletOf(o))
		}
	})
	for _, name := range names {
		if class := classes[name]; class != nil {
			c.splitClass(class, users[name])
			continue
		}
		for _, u := range users[name] {
			if u.settings != nil {
				c.remarkEntry(u.pool, Unrepaired, u.e, u.path, fmt.Sprintf("the settings belong in spec.kubelet of EC2NodeClass %q, which is not in the files", name), "add its file with -f, or move the settings by hand")
			}
		}
	}
}

// kubeletOf returns the settings of a NodePool, without fields that v1 does not have.
func (c *converter) kubeletOf(o *object) kubeletUser {
	spec := o.root.get("spec")
	var users []kubeletUser
	for _, at := range []struct {
		in        *node
		path, key string
	}{
		{spec.get("template", "spec"), "spec.template.spec", "kubelet"}, {spec, "spec", "kubeletConfiguration"}, {spec, "spec", "kubelet"},
	} {
		e := at.in.entry(at.key)
		if e == nil {
			continue
		}
		c.removeRuntimeOf(o, e.value, at.path+"."+at.key)
		if e.value.isNull() || e.value.kind == mappingNode && len(e.value.entries) == 0 {
			at.in.take(at.key)
			continue
		}
		users = append(users, kubeletUser{o, at.in, e, at.path + "." + at.key, e.value})
	}
	switch len(users) {
	case 0:
		return c.noted(o)
	case 1:
		return users[0]
	}
	c.remarkEntry(o, Unrepaired, users[1].e, users[1].path, users[0].path+" is set, too", "remove one of them")
	return kubeletUser{pool: o}
}

// noted returns the settings that Karpenter 1.0 noted in an annotation.
func (c *converter) noted(o *object) kubeletUser {
	annotations := o.root.get("metadata", "annotations")
	for _, key := range sortedMappingKeys(annotations) {
		if !strings.HasPrefix(key, compatibility) || !strings.HasSuffix(key, "/v1beta1-kubelet-conversion") {
			continue
		}
		value, err := decodeJSON(annotations.textAt(key))
		if settings, ok := value.(map[string]any); err == nil && ok {
			e := annotations.take(key)
			n := fromJSON(settings)
			c.removeRuntimeOf(o, n, "metadata.annotations")
			c.removeCompatibility(o)
			if len(n.entries) == 0 {
				return kubeletUser{pool: o}
			}
			return kubeletUser{o, nil, e, "metadata.annotations", n}
		}
		c.remarkEntry(o, Unrepaired, annotations.entry(key), "metadata.annotations", "cannot be read as JSON", "write the settings into spec.kubelet of the EC2NodeClass and remove the annotation")
	}
	c.removeCompatibility(o)
	return kubeletUser{pool: o}
}

// removeCompatibility removes the annotations of Karpenter 1.0 that are of no use any more.
func (c *converter) removeCompatibility(o *object) {
	annotations := o.root.get("metadata", "annotations")
	for _, key := range sortedMappingKeys(annotations) {
		if strings.HasPrefix(key, compatibility) && !strings.HasSuffix(key, "/v1beta1-kubelet-conversion") {
			c.remarkEntry(o, Converted, annotations.take(key), "metadata.annotations", key+" removed: only Karpenter 1.0 reads it", "")
		}
	}
	if annotations != nil && annotations.changed && len(annotations.entries) == 0 {
		o.root.get("metadata").take("annotations")
	}
}

// splitClass writes the settings of the NodePools of a class into it, and into copies of it.
func (c *converter) splitClass(class *object, users []kubeletUser) {
	spec := class.root.mapping("spec")
	if spec == nil {
		return
	}
	own := spec.get("kubelet")
	taken := false // whether the class itself has its settings
	variants := map[string]string{}
	if !own.isNull() {
		taken, variants[own.fingerprint()] = true, class.name()
	}
	for _, u := range users {
		if u.settings == nil {
			taken = true
		}
	}
	base := class.root.clone()
	for _, u := range users {
		if u.settings == nil {
			continue
		}
		c.dropSettings(u)
		name, known := variants[u.settings.fingerprint()]
		switch {
		case known:
		case !taken:
			taken, name = true, class.name()
			spec.take("kubelet")
			spec.add(newEntry("kubelet", u.settings.clone()))
		default:
			name = c.freeName(class.name() + "-" + u.pool.name())
			c.copyClass(class, base, name, u.settings)
		}
		variants[u.settings.fingerprint()] = name
		text := "moved to spec.kubelet of EC2NodeClass " + name
		if name != class.name() {
			ref := u.pool.root.get("spec", "template", "spec", "nodeClassRef").entry("name")
			ref.value = newScalar(name)
			text += ", a copy of " + class.name() + " for NodePools with these settings"
		}
		c.remarkEntry(u.pool, Converted, u.e, u.path, text, "")
	}
}

func (c *converter) dropSettings(u kubeletUser) {
	if u.in != nil {
		u.in.take(u.e.key)
	}
}

// copyClass adds a class with other settings behind the document of a class.
func (c *converter) copyClass(class *object, base *node, name string, settings *node) {
	root := base.clone()
	root.line, root.column = class.root.line, class.root.column
	root.get("metadata").set("name", newScalar(name))
	spec := root.mapping("spec")
	spec.take("kubelet")
	spec.add(newEntry("kubelet", settings.clone()))
	root.take("status")
	class.section.objects = append(class.section.objects, &object{
		root: root, apiVersion: cluster.NodeClasses.APIVersion(), kind: "EC2NodeClass", section: class.section, added: true,
	})
}

// convertNodeClaim converts a NodeClaim of an older version, or names a Machine.
func (c *converter) convertNodeClaim(o *object) {
	if o.kind == "Machine" {
		c.remark(o, Unrepaired, 0, 0, "", "a Machine of a running node has no counterpart that can be written by hand",
			"leave it out: the running Karpenter converts its nodes when it is upgraded step by step")
		return
	}
	c.setHeader(o, cluster.NodeClaims)
	c.cleanMetadata(o)
	spec := o.root.get("spec")
	if spec == nil || spec.kind != mappingNode {
		return
	}
	if ref := spec.entry("nodeClassRef"); !ref.isEmpty() {
		c.completeReference(o, ref, "spec.nodeClassRef")
	}
	if e := spec.take("kubelet"); e != nil {
		c.remarkEntry(o, Check, e, "spec.kubelet", "removed: the settings are in spec.kubelet of the EC2NodeClass", "the kubelet of a running node keeps its settings")
	}
}
