package convert

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// convertNodePool converts a Provisioner or a NodePool of any version.
func (c *converter) convertNodePool(o *object) {
	provisioner := o.kind == "Provisioner"
	c.setHeader(o, cluster.NodePools)
	c.cleanMetadata(o)
	spec := o.root.mapping("spec")
	if spec == nil {
		return // Reading the result names the wrong type.
	}
	if hasAny(spec, "providerRef", "provider", "ttlSecondsAfterEmpty", "ttlSecondsUntilExpired", "consolidation", "kubeletConfiguration") {
		provisioner, o.old = true, true // A Provisioner whose header alone was changed.
	}
	m := mover{c, o, spec}
	m.convertLimits()
	m.placeTemplate(provisioner)
	m.convertTimes(provisioner)
	m.moveMisplaced()
	m.convertPolicy()
	m.convertReference()
	if provisioner {
		m.addRequirements()
	}
	m.convertRest()
	if o.old && m.template("spec").get("requirements").isNull() {
		m.template("spec").set("requirements", newList())
	}
}

// mover moves fields within the spec of a NodePool.
type mover struct {
	*converter
	o    *object
	spec *node
}

// template returns a mapping of the template, and adds it if it is missing.
func (m mover) template(key string) *node {
	if m.spec.get("template") == nil {
		m.spec.entries = append([]*entry{newEntry("template", newMapping())}, m.spec.entries...)
		m.spec.changed = true
	}
	if inner := m.spec.mapping("template", key); inner != nil {
		return inner
	}
	return newMapping() // Reading the result names the wrong type.
}

// move moves a field of the spec into a mapping. The older field loses to one that is there.
func (m mover) move(from *node, fromPath, key string, to *node, toPath, name string) {
	e := from.entry(key)
	if e == nil {
		return
	}
	path := fromPath + "." + key
	if old := to.entry(name); old != nil && old != e && !old.value.isNull() {
		m.remarkEntry(m.o, Unrepaired, e, path, toPath+"."+name+" is set, too", "remove one of them")
		return
	}
	from.take(key)
	to.take(name)
	e.key = name
	to.add(e)
	m.remarkEntry(m.o, Converted, e, path, "moved to "+toPath+"."+name, "")
}

// drop removes a field and says why.
func (m mover) drop(from *node, fromPath, key, text, remedy string, severity RemarkSeverity) {
	if e := from.take(key); e != nil {
		m.remarkEntry(m.o, severity, e, fromPath+"."+key, text, remedy)
	}
}

// convertLimits writes spec.limit and spec.limits.resources as spec.limits.
func (m mover) convertLimits() {
	if e := m.spec.entry("limit"); e != nil && m.spec.entry("limits").isEmpty() {
		m.spec.take("limits")
		e.key = "limits"
		m.spec.changed = true
		m.remarkEntry(m.o, Converted, e, "spec.limit", "the field is limits; without limits the pool has no limit at all", "")
	}
	limits := m.spec.get("limits")
	resources := limits.entry("resources")
	if resources == nil || resources.value.kind != mappingNode && !resources.value.isNull() {
		return
	}
	limits.take("resources")
	for i, e := range resources.value.entries {
		if i == 0 && resources.first > 0 && e.first > 0 && resources.head < resources.first {
			e.head = min(e.head, resources.first+1)
		}
		limits.add(e)
	}
	m.remarkEntry(m.o, Converted, resources, "spec.limits.resources", "moved to spec.limits", "")
}

func (e *entry) isEmpty() bool { return e == nil || e.value.isNull() }

// placeTemplate moves what Provisioners have in their spec to the template of the nodes.
func (m mover) placeTemplate(provisioner bool) {
	if !provisioner && !hasAny(m.spec, "labels", "annotations", "taints", "startupTaints", "requirements") {
		return
	}
	for _, key := range []string{"labels", "annotations"} {
		if m.spec.entry(key) != nil {
			m.move(m.spec, "spec", key, m.template("metadata"), "spec.template.metadata", key)
		}
	}
	for _, key := range []string{"taints", "startupTaints", "requirements"} {
		if m.spec.entry(key) != nil {
			m.move(m.spec, "spec", key, m.template("spec"), "spec.template.spec", key)
		}
	}
}

func hasAny(n *node, keys ...string) bool {
	for _, key := range keys {
		if n.entry(key) != nil {
			return true
		}
	}
	return false
}

// convertTimes writes the times and the consolidation of a Provisioner as those of a NodePool.
func (m mover) convertTimes(provisioner bool) {
	expired, empty, consolidation := m.spec.entry("ttlSecondsUntilExpired"), m.spec.entry("ttlSecondsAfterEmpty"), m.spec.entry("consolidation")
	switch {
	case !expired.isEmpty():
		expired.value.value, expired.value.changed = expired.value.text()+"s", true
		m.move(m.spec, "spec", "ttlSecondsUntilExpired", m.template("spec"), "spec.template.spec", "expireAfter")
	case provisioner && m.template("spec").get("expireAfter") == nil:
		m.spec.take("ttlSecondsUntilExpired")
		m.template("spec").set("expireAfter", newScalar("Never"))
		m.remark(m.o, Converted, 0, 0, "spec.ttlSecondsUntilExpired", "missing: nodes never expired; spec.template.spec.expireAfter is Never, because its default is 720h", "")
	}
	if !provisioner && empty == nil && consolidation == nil {
		return
	}
	m.spec.take("consolidation")
	if consolidation.isEmpty() || consolidation.value.get("enabled").isNull() || consolidation.value.textAt("enabled") == "false" {
		m.convertEmpty(empty, consolidation, provisioner)
		return
	}
	disruption := m.disruption()
	disruption.set("consolidationPolicy", newScalar(string(karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized)))
	disruption.set("consolidateAfter", newScalar("0s"))
	m.remarkEntry(m.o, Converted, consolidation, "spec.consolidation", "is now spec.disruption.consolidationPolicy: WhenEmptyOrUnderutilized", "")
	m.drop(m.spec, "spec", "ttlSecondsAfterEmpty", "removed: consolidation removes empty nodes, and excluded this field", "", Converted)
	m.nameBudgets(provisioner)
}

// convertEmpty converts ttlSecondsAfterEmpty, which may be absent.
func (m mover) convertEmpty(empty, consolidation *entry, provisioner bool) {
	disruption := m.disruption()
	if consolidation != nil {
		m.remarkEntry(m.o, Converted, consolidation, "spec.consolidation", "off: spec.disruption.consolidationPolicy is WhenEmpty", "")
	}
	if !provisioner && empty == nil {
		disruption.set("consolidationPolicy", newScalar(string(karpenter.ConsolidationPolicyWhenEmpty)))
		return
	}
	if disruption.get("consolidationPolicy") == nil {
		disruption.set("consolidationPolicy", newScalar(string(karpenter.ConsolidationPolicyWhenEmpty)))
	}
	if empty.isEmpty() {
		m.spec.take("ttlSecondsAfterEmpty")
		if disruption.get("consolidateAfter") == nil {
			disruption.set("consolidateAfter", newScalar("Never"))
			m.remark(m.o, Converted, 0, 0, "spec.ttlSecondsAfterEmpty", "missing: empty nodes stayed; spec.disruption.consolidateAfter is Never", "")
		}
		return
	}
	empty.value.value, empty.value.changed = empty.value.text()+"s", true
	m.move(m.spec, "spec", "ttlSecondsAfterEmpty", disruption, "spec.disruption", "consolidateAfter")
	m.nameBudgets(provisioner)
}

// nameBudgets says that v1 limits disruption by default.
func (m mover) nameBudgets(provisioner bool) {
	if provisioner && m.spec.get("disruption", "budgets") == nil {
		m.remark(m.o, Converted, 0, 0, "spec.disruption.budgets", "missing: by default at most 10% of the pool's nodes are disrupted at once", "")
	}
}

func (m mover) disruption() *node {
	if inner := m.spec.mapping("disruption"); inner != nil {
		return inner
	}
	return newMapping()
}

// moveMisplaced moves fields that other versions have elsewhere.
func (m mover) moveMisplaced() {
	if d := m.spec.get("disruption"); d.entry("expireAfter") != nil {
		m.move(d, "spec.disruption", "expireAfter", m.template("spec"), "spec.template.spec", "expireAfter")
	}
	for _, key := range []string{"expireAfter", "terminationGracePeriod"} {
		if m.spec.entry(key) != nil {
			m.move(m.spec, "spec", key, m.template("spec"), "spec.template.spec", key)
		}
	}
	for _, key := range []string{"consolidateAfter", "consolidationPolicy", "budgets"} {
		if m.spec.entry(key) != nil {
			m.move(m.spec, "spec", key, m.disruption(), "spec.disruption", key)
		}
	}
	if d := m.spec.entry("disruption"); d != nil && d.value.kind == mappingNode && len(d.value.entries) == 0 && d.value.changed {
		m.spec.take("disruption")
	}
}

// convertPolicy renames the policy of v1beta1.
func (m mover) convertPolicy() {
	e := m.spec.get("disruption").entry("consolidationPolicy")
	if e == nil || e.value.text() != "WhenUnderutilized" {
		return
	}
	e.value = &node{value: string(karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized), changed: true, line: e.value.line}
	m.remarkEntry(m.o, Converted, e, "spec.disruption.consolidationPolicy", "WhenUnderutilized is WhenEmptyOrUnderutilized since v1", "")
}

// convertReference writes providerRef and the name of v1beta1 as a complete nodeClassRef.
func (m mover) convertReference() {
	for _, key := range []string{"providerRef", "nodeClassRef"} {
		if m.spec.entry(key) != nil {
			m.move(m.spec, "spec", key, m.template("spec"), "spec.template.spec", "nodeClassRef")
		}
	}
	m.convertProvider()
	template := m.template("spec")
	ref := template.entry("nodeClassRef")
	if ref.isEmpty() {
		if !m.o.old {
			return
		}
		name, why := m.guessClass()
		template.set("nodeClassRef", newMapping(newText("group", awsGroup), newText("kind", "EC2NodeClass"), newText("name", name)))
		m.remark(m.o, Check, 0, 0, "spec.template.spec.nodeClassRef", "missing: "+why, "check the name of the EC2NodeClass")
		return
	}
	m.completeReference(m.o, ref, "spec.template.spec.nodeClassRef")
}

// guessClass returns the name of the only class, or of the usual one.
func (m mover) guessClass() (name, why string) {
	names := map[string]bool{}
	m.eachObject(func(o *object) {
		if o.isClass() {
			names[o.name()] = true
		}
	})
	if len(names) == 1 {
		return sortedKeys(names)[0], "refers to the only EC2NodeClass in the files"
	}
	return "default", "assumes an EC2NodeClass default"
}

// completeReference writes the group and kind of a reference.
func (c *converter) completeReference(o *object, e *entry, path string) {
	ref := e.value
	if ref.kind != mappingNode {
		return
	}
	version := ref.take("apiVersion")
	if version != nil && !strings.HasPrefix(version.value.text(), awsGroup+"/") && version.value.text() != "" {
		c.remarkEntry(o, Check, version, path+".apiVersion", "the reference was to "+version.value.text()+" "+ref.textAt("kind"), "check that it is an EC2NodeClass")
	}
	before := ref.fingerprint()
	if ref.get("kind").isNull() || ref.textAt("kind") == "AWSNodeTemplate" {
		if kind := ref.entry("kind"); kind != nil {
			kind.value = newScalar("EC2NodeClass")
		} else {
			ref.insert("name", newText("kind", "EC2NodeClass"))
		}
	}
	if ref.get("group").isNull() {
		ref.take("group")
		ref.insert("kind", newText("group", awsGroup))
	}
	if version != nil || before != ref.fingerprint() {
		c.remarkEntry(o, Converted, e, path, "has group and kind since v1", "")
	}
}

// convertRest removes and repairs the other fields.
func (m mover) convertRest() {
	if t := m.spec.get("template", "spec"); t != nil {
		m.drop(t, "spec.template.spec", "resources", "removed: nodes are sized by their pods", "bounds are spec.limits", Check)
	}
	if e := m.spec.entry("weight"); e != nil && e.value.text() == "0" {
		m.drop(m.spec, "spec", "weight", "removed: 0 is the lowest weight, and the default", "", Converted)
	}
	for _, place := range []struct {
		n    *node
		path string
	}{{m.spec.get("template", "metadata", "annotations"), "spec.template.metadata.annotations"}, {m.spec.get("template", "metadata", "labels"), "spec.template.metadata.labels"}} {
		m.renameKeys(m.o, place.n, place.path)
	}
	m.renameRequirements(m.spec.get("template", "spec", "requirements"))
}

// renameRequirements renames the keys of labels in requirements.
func (m mover) renameRequirements(list *node) {
	if list == nil || list.kind != listNode {
		return
	}
	for _, e := range list.entries {
		key := e.value.entry("key")
		if key == nil {
			continue
		}
		if now, old := renamedLabels[key.value.text()]; old {
			m.remarkEntry(m.o, Converted, key, "spec.template.spec.requirements", key.value.text()+" is now "+now, "")
			key.value = newScalar(now)
		}
	}
}
