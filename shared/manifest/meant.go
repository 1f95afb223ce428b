package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// movedFields has hints for fields that were renamed or moved, by kind and path.
var movedFields = map[string]string{
	"NodePool spec.limit":                        `, did you mean "limits"? without limits the pool has no limit at all`,
	"NodePool spec.requirements":                 `: requirements belong in spec.template.spec.requirements`,
	"NodePool spec.taints":                       `: taints belong in spec.template.spec.taints`,
	"NodePool spec.startupTaints":                `: startup taints belong in spec.template.spec.startupTaints`,
	"NodePool spec.labels":                       `: labels of nodes belong in spec.template.metadata.labels`,
	"NodePool spec.annotations":                  `: annotations of nodes belong in spec.template.metadata.annotations`,
	"NodePool spec.expireAfter":                  `: it belongs in spec.template.spec.expireAfter`,
	"NodePool spec.terminationGracePeriod":       `: it belongs in spec.template.spec.terminationGracePeriod`,
	"NodePool spec.consolidateAfter":             `: it belongs in spec.disruption.consolidateAfter`,
	"NodePool spec.consolidationPolicy":          `: it belongs in spec.disruption.consolidationPolicy`,
	"NodePool spec.budgets":                      `: they belong in spec.disruption.budgets`,
	"NodePool spec.nodeClassRef":                 `: it belongs in spec.template.spec.nodeClassRef`,
	"NodePool spec.disruption.expireAfter":       `: it is spec.template.spec.expireAfter since v1`,
	"NodePool spec.template.spec.kubelet":        `: it is spec.kubelet of the EC2NodeClass since v1; pools with different kubelet settings need one class each`,
	"NodePool spec.template.spec.resources":      `: a pool's nodes are sized by its pods; bounds are spec.limits`,
	"NodePool spec.ttlSecondsAfterEmpty":         `: write spec.disruption.consolidationPolicy: WhenEmpty and spec.disruption.consolidateAfter: <seconds>s`,
	"NodePool spec.ttlSecondsUntilExpired":       `: write spec.template.spec.expireAfter`,
	"NodePool spec.consolidation":                `: write spec.disruption.consolidationPolicy: WhenEmptyOrUnderutilized`,
	"NodePool spec.providerRef":                  `: write spec.template.spec.nodeClassRef with group, kind and name`,
	"NodePool spec.provider":                     `: write an EC2NodeClass and refer to it in spec.template.spec.nodeClassRef`,
	"EC2NodeClass spec.subnetSelector":           `: write spec.subnetSelectorTerms, a list of {tags: …} or {id: …}`,
	"EC2NodeClass spec.securityGroupSelector":    `: write spec.securityGroupSelectorTerms, a list of {tags: …}, {id: …} or {name: …}`,
	"EC2NodeClass spec.amiSelector":              `: write spec.amiSelectorTerms, a list such as [{alias: al2023@latest}]`,
	"EC2NodeClass spec.kubelet.containerRuntime": `: removed in v1, because containerd is the only runtime: remove it`,
}

// shapeHints has hints for values of the wrong type, by kind and path.
var shapeHints = map[string]string{
	"NodePool spec.limits.resources":               `: write its entries directly under spec.limits`,
	"EC2NodeClass spec.subnetSelectorTerms":        `: write a list of terms, such as [{tags: {karpenter.sh/discovery: my-cluster}}]`,
	"EC2NodeClass spec.securityGroupSelectorTerms": `: write a list of terms, such as [{tags: {karpenter.sh/discovery: my-cluster}}]`,
	"EC2NodeClass spec.amiSelectorTerms":           `: write a list of terms, such as [{alias: al2023@latest}]`,
}

func shapeHint(kind, path string) string { return shapeHints[kind+" "+path] }

// suggestField returns a hint about the field that was probably meant.
func (r *reader) suggestField(name, path string, t reflect.Type, above []entry) string {
	s := structFieldsOf(t)
	if text, ok := movedFields[r.kind+" "+joinPath(path, name)]; ok {
		return text
	}
	if parent := r.emptyParent(name, t, above); parent != "" {
		return fmt.Sprintf(": it belongs into %q above, which is empty: indent it", parent)
	}
	if best := NearestName(name, s.names); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	if r.root != nil {
		if where := findField(r.root, name); where != "" {
			return ": " + r.kind + " has the field " + where
		}
	}
	if path != "" && len(s.names) <= 12 {
		return ": valid fields are " + strings.Join(s.names, ", ")
	}
	return ""
}

// emptyParent returns the empty field above that has a field of this name, which happens if
// indentation was lost.
func (r *reader) emptyParent(name string, t reflect.Type, above []entry) string {
	for _, e := range slices.Backward(above) {
		n, _, ok := r.resolveNode(e.value, "")
		if _, null := n.(*ast.NullNode); !ok || !null {
			continue
		}
		inside, isField := structFieldsOf(t).byName[e.key]
		if !isField {
			continue
		}
		if in, _, isStruct := nestedStruct(inside); isStruct {
			if _, has := structFieldsOf(in).byName[name]; has {
				return e.key
			}
		}
	}
	return ""
}
