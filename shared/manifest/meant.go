package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// moved is what people write for a field that has another name or place now, by
// kind and path; a star stands for any index.
var moved = map[string]string{
	"NodePool spec.limit":                        `, did you mean "limits"? without it there is NO limit at all`,
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
	"EC2NodeClass spec.kubelet.containerRuntime": `: it is gone since v1, containerd is the only one: take it out`,
}

// misfit is the same for values of the wrong shape.
var misfit = map[string]string{
	"NodePool spec.limits.resources":               `: write its entries directly under spec.limits`,
	"EC2NodeClass spec.subnetSelectorTerms":        `: write a list of terms, such as [{tags: {karpenter.sh/discovery: my-cluster}}]`,
	"EC2NodeClass spec.securityGroupSelectorTerms": `: write a list of terms, such as [{tags: {karpenter.sh/discovery: my-cluster}}]`,
	"EC2NodeClass spec.amiSelectorTerms":           `: write a list of terms, such as [{alias: al2023@latest}]`,
}

func special(kind, path string) string { return misfit[kind+" "+path] }

// meant says what an unknown field was probably meant to be.
func (r *reader) meant(name, path string, t reflect.Type, above []entry) string {
	s := shapeOf(t)
	if text, ok := moved[r.kind+" "+join(path, name)]; ok {
		return text
	}
	if parent := r.orphanOf(name, t, above); parent != "" {
		return fmt.Sprintf(": it belongs inside %q, which is empty above it: indent it, the indentation seems to be lost", parent)
	}
	if best := nearest(name, s.names); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	if r.root != nil {
		if where := elsewhere(r.root, name); where != "" {
			return ": " + r.kind + " has it as " + where
		}
	}
	if path != "" && len(s.names) <= 12 {
		return ": there are " + strings.Join(s.names, ", ")
	}
	return ""
}

// orphanOf finds the empty field above that should have held the name: what is
// left of nesting when indentation is lost.
func (r *reader) orphanOf(name string, t reflect.Type, above []entry) string {
	for _, e := range slices.Backward(above) {
		n, _, ok := r.follow(e.value, "")
		if _, null := n.(*ast.NullNode); !ok || !null {
			continue
		}
		inside, isField := shapeOf(t).byName[e.key]
		if !isField {
			continue
		}
		if in, _, isStruct := nested(inside); isStruct {
			if _, has := shapeOf(in).byName[name]; has {
				return e.key
			}
		}
	}
	return ""
}
