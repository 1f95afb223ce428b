package convert

import (
	"strings"
)

// convertSelector writes a selector of v1alpha1, a mapping of tags, as a list of terms.
func (s classSpec) convertSelector(key, name string) {
	e := s.spec.entry(key)
	if e == nil {
		return
	}
	if old := s.spec.get(name); !old.isNull() {
		s.remarkEntry(s.o, Unrepaired, e, s.at(key), "spec."+name+" is set, too", "remove one of them")
		return
	}
	if e.value.kind != mappingNode {
		if e.value.isNull() {
			s.spec.take(key)
		}
		return // Reading the result names the wrong type.
	}
	s.spec.take(name)
	e.value, e.key = s.selectorTerms(e, false), name
	e.value.changed = true
	s.remarkEntry(s.o, Converted, e, s.at(key), "is now spec."+name, "")
}

// selectorTerms returns the terms that select the same as the mapping of an entry. Values with commas are
// alternatives, an empty value is any.
func (s classSpec) selectorTerms(e *entry, images bool) *node {
	ids, names, owners := []string{""}, []string{""}, []string{""}
	tags := []*node{newMapping()}
	for _, tag := range e.value.entries {
		value := tag.value.text()
		switch {
		case tag.key == "aws-ids" || tag.key == "aws::ids":
			ids = splitCommas(value)
		case images && tag.key == "aws::name":
			names = splitCommas(value)
		case images && tag.key == "aws::owners":
			owners = splitCommas(value)
		case strings.Contains(value, ","):
			tags = multiplyTags(tags, tag.key, splitCommas(value))
		default:
			addTag(tags, tag)
		}
	}
	out := newList()
	for _, owner := range owners {
		for _, id := range ids {
			for _, name := range names {
				for _, inner := range tags {
					out.entries = append(out.entries, &entry{value: s.term(e, id, name, owner, inner)})
				}
			}
		}
	}
	return out
}

// term returns one term. An id excludes all other fields since v1beta1.
func (s classSpec) term(e *entry, id, name, owner string, tags *node) *node {
	if id != "" {
		if len(tags.entries) > 0 || name != "" || owner != "" {
			s.remarkEntry(s.o, Check, e, s.at(e.key), "ids and tags were combined; the result selects "+id+" by its id alone", "check that this is what you want")
		}
		return newMapping(newText("id", id))
	}
	out := newMapping()
	if name != "" {
		out.add(newText("name", name))
	}
	if owner != "" {
		out.add(newText("owner", owner))
	}
	if len(tags.entries) > 0 {
		out.add(newEntry("tags", tags))
	}
	return out
}

func splitCommas(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	if out == nil {
		return []string{""}
	}
	return out
}

// addTag adds a tag to each mapping. An empty value is any.
func addTag(tags []*node, tag *entry) {
	if tag.value.text() == "" {
		tag.value = newScalar("*")
	}
	for i, inner := range tags {
		if i > 0 {
			inner.add(newEntry(tag.key, tag.value.clone()))
		} else {
			inner.add(tag)
		}
	}
}

// multiplyTags returns each mapping once for each value.
func multiplyTags(tags []*node, key string, values []string) (out []*node) {
	for _, value := range values {
		for _, inner := range tags {
			c := inner.clone()
			c.add(newText(key, value))
			out = append(out, c)
		}
	}
	return out
}

// convertImages writes the image family and the images' selector as v1 has them.
func (s classSpec) convertImages() {
	if e := s.spec.entry("amiSelector"); e != nil {
		switch {
		case !s.spec.get("amiSelectorTerms").isNull():
			s.remarkEntry(s.o, Unrepaired, e, s.at("amiSelector"), "spec.amiSelectorTerms is set, too", "remove one of them")
		case e.value.kind == mappingNode && len(e.value.entries) > 0:
			s.spec.take("amiSelectorTerms")
			e.value, e.key = s.selectorTerms(e, true), "amiSelectorTerms"
			s.remarkEntry(s.o, Converted, e, s.at("amiSelector"), "is now spec.amiSelectorTerms", "")
		default:
			s.spec.take("amiSelector")
		}
	}
	if !s.o.old {
		s.replaceUbuntu(s.spec.entry("amiFamily"))
		return
	}
	terms := s.spec.get("amiSelectorTerms")
	selected := !terms.isNull() && len(terms.entries) > 0
	if family := s.spec.get("amiFamily"); family.isNull() {
		s.assumeFamily()
	}
	if s.replaceUbuntu(s.spec.entry("amiFamily")) || selected {
		return
	}
	s.useAlias()
}

// assumeFamily writes the family of images if none was written.
func (s classSpec) assumeFamily() {
	s.spec.take("amiFamily")
	if s.template {
		s.spec.insert("amiSelectorTerms", newText("amiFamily", "AL2"))
		s.remark(s.o, Check, 0, 0, s.at("amiFamily"), "missing: it was AL2, whose images end with Kubernetes 1.32", "move to AL2023 with amiSelectorTerms: [{alias: al2023@latest}]")
		return
	}
	s.spec.insert("amiSelectorTerms", newText("amiFamily", "AL2023"))
	s.remark(s.o, Check, 0, 0, s.at("amiFamily"), "missing: assumes AL2023", "check the family of the images")
}

// aliases are the families that have an alias.
var aliases = map[string]string{
	"AL2": "al2", "AL2023": "al2023", "Bottlerocket": "bottlerocket", "Windows2019": "windows2019", "Windows2022": "windows2022",
}

// useAlias replaces a family without a selector by its alias.
func (s classSpec) useAlias() {
	e := s.spec.entry("amiFamily")
	alias, found := aliases[e.value.text()]
	if !found {
		if e.value.text() == "Custom" {
			s.remarkEntry(s.o, Unrepaired, e, s.at("amiFamily"), "Custom without amiSelectorTerms selects no image", "write amiSelectorTerms")
		}
		return
	}
	s.spec.take("amiSelectorTerms")
	family := e.value.text()
	e.key = "amiSelectorTerms"
	e.value = newList(newMapping(newText("alias", alias+"@"+s.version)))
	s.spec.changed = true
	if e.first == 0 && !s.o.added {
		return // The remark about the assumed family says it.
	}
	s.remarkEntry(s.o, Converted, e, s.at("amiFamily"), family+" is now the alias "+alias+"@"+s.version+" in spec.amiSelectorTerms", "")
}

// replaceUbuntu replaces the family Ubuntu, which v1 does not have. Its images use the user data of AL2.
func (s classSpec) replaceUbuntu(e *entry) bool {
	if e == nil || e.value.text() != "Ubuntu" {
		return false
	}
	e.value = newScalar("AL2")
	terms := s.spec.get("amiSelectorTerms")
	if s.spec.get("blockDeviceMappings").isNull() {
		s.spec.take("blockDeviceMappings")
		disk := newMapping(newEntry("encrypted", newScalar(true)), newText("volumeSize", "20Gi"), newText("volumeType", "gp3"))
		s.spec.add(newEntry("blockDeviceMappings", newList(newMapping(newText("deviceName", "/dev/sda1"), newEntry("ebs", disk), newEntry("rootVolume", newScalar(true))))))
	}
	if terms.isNull() || len(terms.entries) == 0 {
		s.remarkEntry(s.o, Unrepaired, e, s.at("amiFamily"), "Ubuntu was removed in v1, and its images have no alias",
			"write amiSelectorTerms with ids, or with the ssmParameter of Canonical's image for your version of Kubernetes")
		return true
	}
	s.remarkEntry(s.o, Converted, e, s.at("amiFamily"), "Ubuntu is AL2 since v1, whose user data its images read; blockDeviceMappings has its root volume", "")
	return true
}

// aliasVersion returns the version of the alias that Karpenter 1.0 noted in an annotation.
func aliasVersion(o *object) string {
	if version := o.root.textAt("metadata", "annotations", "compatibility.karpenter.k8s.aws/v1-alias-version"); version != "" {
		return version
	}
	return "latest"
}
