package planning

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Requirements say what each label may be; a key that is missing may be
// anything. They are immutable: every method returns new ones.
type Requirements map[string]Values

// Add narrows one key in place. It is for building a value that nobody else has
// seen yet; keys are written under their stable names.
func (r Requirements) Add(key string, values Values) {
	key = karpenter.NormalizeLabel(key)
	if was, ok := r[key]; ok {
		values = was.Intersect(values)
	}
	r[key] = values
}

// WithRequirement narrows one key.
func (r Requirements) WithRequirement(key string, values Values) Requirements {
	out := r.Clone()
	out.Add(key, values)
	return out
}

// Intersect narrows every key of other.
func (r Requirements) Intersect(other Requirements) Requirements {
	out := r.Clone()
	for key, values := range other {
		out.Add(key, values)
	}
	return out
}

// Clone returns a copy, which is not nil.
func (r Requirements) Clone() Requirements {
	if r == nil {
		return Requirements{}
	}
	return maps.Clone(r)
}

// NewLabelRequirements requires each label to be exactly as it is. A value that is no label
// value matches no node.
func NewLabelRequirements(labels map[string]string) Requirements {
	out := Requirements{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out.Add(key, NewValues(karpenter.NodeSelectorOpIn, labels[key]))
	}
	return out
}

// NewNodeClaimRequirements reads the requirements of a NodePool or NodeClaim.
func NewNodeClaimRequirements(list []karpenter.NodeSelectorRequirementWithMinValues) Requirements {
	out := Requirements{}
	for _, one := range list {
		values := NewValues(one.Operator, one.Values...)
		if one.MinValues != nil {
			values = values.WithMinValues(*one.MinValues)
		}
		out.Add(one.Key, values)
	}
	return out
}

// NewNodeSelectorTermRequirements reads the expressions of one node selector term. Match fields cannot
// be planned for, so a term that has any matches nothing.
func NewNodeSelectorTermRequirements(term corev1.NodeSelectorTerm) Requirements {
	out := Requirements{}
	for _, one := range term.MatchExpressions {
		out.Add(one.Key, NewValues(one.Operator, one.Values...))
	}
	for _, one := range term.MatchFields {
		out.Add(one.Key, Values{})
	}
	return out
}

// NewNodeSelectorRequirements reads a list of node selector requirements, all of which hold.
func NewNodeSelectorRequirements(list []corev1.NodeSelectorRequirement) Requirements {
	return NewNodeSelectorTermRequirements(corev1.NodeSelectorTerm{MatchExpressions: list})
}

// FindConflict finds the first key, in alphabetical order, on which nodes that
// satisfy r cannot satisfy want: the one key of a nearest miss. A label that r
// does not define may be anything if it is well known, and else is absent.
func (r Requirements) FindConflict(want Requirements) (key string, found bool) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if r.AllowedValues(key).Intersect(want[key]).IsEmpty() {
			return key, true
		}
	}
	return "", false
}

// IsCompatible is Conflict's opposite.
func (r Requirements) IsCompatible(want Requirements) bool {
	for key, values := range want {
		if r.AllowedValues(key).Intersect(values).IsEmpty() {
			return false
		}
	}
	return true
}

// AllowedValues is what a node to be launched under r may have under a key.
func (r Requirements) AllowedValues(key string) Values {
	if values, ok := r[key]; ok {
		return values
	}
	if karpenter.IsWellKnownLabel(key) {
		return AnyValue()
	}
	return AbsentValue()
}

// Guarantees reports whether every node that satisfies r satisfies want. It is
// the question for a claim whose node is still to come: nothing can be narrowed
// any more, so what is open must be good whichever way it falls.
func (r Requirements) Guarantees(want Requirements) bool {
	for key, values := range want {
		if !r.AllowedValues(key).IsSubset(values) {
			return false
		}
	}
	return true
}

// HasMinValues reports whether any key asks for a choice of values.
func (r Requirements) HasMinValues() bool {
	for _, values := range r {
		if values.minValues > 0 {
			return true
		}
	}
	return false
}

// Labels are the labels that r fixes to one value.
func (r Requirements) Labels() map[string]string {
	out := map[string]string{}
	for key, values := range r {
		if value, ok := values.SingleValue(); ok && key != corev1.LabelHostname {
			out[key] = value
		}
	}
	return out
}

// FixCustomLabels gives each label that nobody but the pool decides one of the values that
// it may have. An instance brings its well-known labels along; a custom one that
// must be there would otherwise be missing, and the pods with it. Labels that
// lifecycle sets later are left out.
func (r Requirements) FixCustomLabels() {
	maps.DeleteFunc(r, func(key string, _ Values) bool { return RegistrationLabels[key].listed != nil })
	for key, values := range r {
		if !karpenter.IsWellKnownLabel(key) && !values.absent {
			r[key] = In(values.pickValue()).WithMinValues(values.minValues)
		}
	}
}

// pickValue is one value of the set, the same each time; "" for the empty set.
func (v Values) pickValue() string {
	if !v.others {
		if len(v.listed) == 0 {
			return ""
		}
		return v.listed[0]
	}
	start, step := int64(0), int64(1)
	switch {
	case v.bounded && (v.least > 0 || v.most == math.MaxInt64):
		start = v.least
	case v.bounded:
		start, step = v.most, -1
	case v.Has("true"):
		return "true"
	}
	// Each excluded value costs one step at most, so this ends.
	for n, tries := start, len(v.listed)+1; tries > 0; n, tries = n+step, tries-1 {
		if text := strconv.FormatInt(n, 10); v.Has(text) {
			return text
		}
	}
	return ""
}

// NodeSelectorRequirements writes the requirements as a NodeClaim has them, sorted by key. Keys that
// may be anything are left out.
func (r Requirements) NodeSelectorRequirements() []karpenter.NodeSelectorRequirementWithMinValues {
	var out []karpenter.NodeSelectorRequirementWithMinValues
	for _, key := range slices.Sorted(maps.Keys(r)) {
		out = append(out, r[key].nodeSelectorRequirements(key)...)
	}
	return out
}

// nodeSelectorRequirements writes one key. A set of numbers may need up to three requirements.
func (v Values) nodeSelectorRequirements(key string) []karpenter.NodeSelectorRequirementWithMinValues {
	var out []karpenter.NodeSelectorRequirementWithMinValues
	add := func(operator corev1.NodeSelectorOperator, values ...string) {
		out = append(out, karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values})
	}
	switch {
	case !v.others && v.absent:
		add(karpenter.NodeSelectorOpDoesNotExist)
	case !v.others:
		add(karpenter.NodeSelectorOpIn, v.listed...)
	case v.bounded:
		if v.least > 0 || v.most == math.MaxInt64 {
			add(karpenter.NodeSelectorOpGte, strconv.FormatInt(v.least, 10))
		}
		if v.most != math.MaxInt64 {
			add(karpenter.NodeSelectorOpLte, strconv.FormatInt(v.most, 10))
		}
	case !v.absent:
		// NotIn alone would let the label be missing.
		add(karpenter.NodeSelectorOpExists)
	}
	if v.others && len(v.listed) > 0 {
		add(karpenter.NodeSelectorOpNotIn, v.listed...)
	}
	if v.minValues > 0 && len(out) > 0 {
		out[0].MinValues = new(v.minValues)
	}
	return out
}

// String reads as a user would write it.
func (v Values) String() string {
	var parts []string
	for _, one := range v.nodeSelectorRequirements("") {
		part := string(one.Operator)
		if len(one.Values) > 0 {
			part += fmt.Sprint(" ", one.Values)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "anything"
	}
	return strings.Join(parts, " and ")
}

// RegistrationLabels are the labels that lifecycle sets on the Node of each NodeClaim before
// pods run there. Pods and daemons may select them; no NodeClaim states them, because
// they say how far a node has come. Karpenter:
// pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go.
var RegistrationLabels = Requirements{karpenter.NodeRegisteredLabelKey: In("true"), karpenter.NodeInitializedLabelKey: In("true")}

// InstanceTenancy is the tenancy that instances with these requirements are launched with:
// dedicated only if the requirements exclude default
// (Karpenter: pkg/providers/instance/instance.go, getTenancyType).
func InstanceTenancy(reqs Requirements) string {
	values, stated := reqs[karpenter.LabelInstanceTenancy]
	if stated && !values.Has(karpenter.TenancyDefault) && values.Has(karpenter.TenancyDedicated) {
		return karpenter.TenancyDedicated
	}
	return karpenter.TenancyDefault
}
