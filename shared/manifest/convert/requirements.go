package convert

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// provisionerDefault is a requirement that Karpenter's webhook added to a Provisioner without one for the key. Source:
// karpenter-provider-aws v0.31.0, pkg/apis/v1alpha5/provisioner.go, SetDefaults, which is the same since v0.19.0. Before,
// pkg/cloudprovider/aws/cloudprovider.go (v0.16.0, defaultLabels) added architecture and capacity type, unless a label of
// the Provisioner had the key, and useOpinionatedInstanceFilter chose the instance types.
type provisionerDefault struct {
	key, operator string
	values        []string
	// unless are keys whose requirement also prevents the default.
	unless []string
}

var provisionerDefaults = []provisionerDefault{
	{corev1.LabelOSStable, "In", []string{"linux"}, nil},
	{corev1.LabelArchStable, "In", []string{"amd64"}, nil},
	{karpenter.CapacityTypeLabelKey, "In", []string{"on-demand"}, nil},
	{karpenter.LabelInstanceCategory, "In", []string{"c", "m", "r"}, instanceKeys},
	{karpenter.LabelInstanceGeneration, "Gt", []string{"2"}, instanceKeys},
}

// instanceKeys are the keys that choose instance types.
var instanceKeys = []string{corev1.LabelInstanceTypeStable, karpenter.LabelInstanceFamily, karpenter.LabelInstanceCategory, karpenter.LabelInstanceGeneration}

// addRequirements adds the requirements that a Provisioner had by default, because a NodePool has none.
func (m mover) addRequirements() {
	template := m.template("spec")
	list := template.get("requirements")
	if list.isNull() {
		template.take("requirements")
		list = newList()
		template.add(newEntry("requirements", list))
	}
	if list.kind != listNode {
		return // Reading the result names the wrong type.
	}
	have := map[string]bool{}
	// Requirements count under their stable names: karpenter v0.31.0, pkg/scheduling/requirement.go, NewRequirement.
	stable := karpenter.NormalizedLabels()
	for _, e := range list.entries {
		key := e.value.textAt("key")
		have[firstText(stable[key], key)] = true
	}
	for _, key := range sortedMappingKeys(m.spec.get("template", "metadata", "labels")) {
		have[firstText(stable[key], key)] = true
	}
	var added []string
	var items []*entry
	for _, d := range provisionerDefaults {
		if have[d.key] || anyOf(have, d.unless) {
			continue
		}
		items = append(items, &entry{value: newMapping(newText("key", d.key), newText("operator", d.operator), newEntry("values", textList(d.values...)))})
		added = append(added, fmt.Sprintf("%s %s %s", d.key, d.operator, strings.Join(d.values, ", ")))
	}
	if len(items) > 0 {
		list.entries, list.changed = append(list.entries, items...), true
		m.remark(m.o, Converted, 0, 0, "spec.requirements", "added what Karpenter required by default: "+strings.Join(added, "; "), "")
	}
}

func anyOf(have map[string]bool, keys []string) bool {
	for _, key := range keys {
		if have[key] {
			return true
		}
	}
	return false
}

func sortedMappingKeys(n *node) (out []string) {
	if n == nil {
		return nil
	}
	for _, e := range n.entries {
		out = append(out, e.key)
	}
	return out
}
