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

// Requirements are the allowed values of each label; a missing key allows every value. They are
// immutable: methods return new ones, except where noted.
type Requirements map[string]Values

// Add narrows one key in place. Use it only on a value that is not shared yet. Keys are stored under
// their stable names.
func (r Requirements) Add(key string, values Values) {
	key = karpenter.NormalizeLabel(key)
	if was, ok := r[key]; ok {
		values = was.Intersect(values)
	}
	r[key] = values
}

// WithRequirement returns the requirements with one key narrowed.
func (r Requirements) WithRequirement(key string, values Values) Requirements {
	out := r.Clone()
	out.Add(key, values)
	return out
}

// Intersect returns the requirements narrowed by those of other.
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

// NewLabelRequirements requires each label to have its value. An invalid label value matches no node.
func NewLabelRequirements(labels map[string]string) Requirements {
	out := Requirements{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out.Add(key, NewValues(karpenter.NodeSelectorOpIn, labels[key]))
	}
	return out
}

// NewNodeClaimRequirements converts the requirements of a NodePool or NodeClaim.
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

// NewNodeSelectorTermRequirements converts the expressions of one node selector term. Match fields are
// not supported for new nodes, so a term that has any matches nothing.
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

// NewNodeSelectorRequirements converts a list of node selector requirements, which must all hold.
func NewNodeSelectorRequirements(list []corev1.NodeSelectorRequirement) Requirements {
	return NewNodeSelectorTermRequirements(corev1.NodeSelectorTerm{MatchExpressions: list})
}

// FindConflict returns the first key, by name, on which no node can satisfy both r and want. A label
// that r does not define may have any value if it is well known; otherwise it is absent.
func (r Requirements) FindConflict(want Requirements) (key string, found bool) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if r.AllowedValues(key).Intersect(want[key]).IsEmpty() {
			return key, true
		}
	}
	return "", false
}

// IsCompatible reports whether there is no conflict.
func (r Requirements) IsCompatible(want Requirements) bool {
	for key, values := range want {
		if r.AllowedValues(key).Intersect(values).IsEmpty() {
			return false
		}
	}
	return true
}

// AllowedValues returns the values that a node launched under r may have for a key.
func (r Requirements) AllowedValues(key string) Values {
	if values, ok := r[key]; ok {
		return values
	}
	if karpenter.IsWellKnownLabel(key) {
		return AnyValue()
	}
	return AbsentValue()
}

// Guarantees reports whether every node that satisfies r satisfies want. It is for a NodeClaim whose
// node is not launched: its requirements cannot be narrowed any more, so every value that is still
// open must be allowed.
func (r Requirements) Guarantees(want Requirements) bool {
	for key, values := range want {
		if !r.AllowedValues(key).IsSubset(values) {
			return false
		}
	}
	return true
}

// IsImpossible reports whether no node can satisfy r.
func (r Requirements) IsImpossible() bool {
	for _, values := range r {
		if values.IsEmpty() {
			return true
		}
	}
	return false
}

// HasMinValues reports whether any key has minValues.
func (r Requirements) HasMinValues() bool {
	for _, values := range r {
		if values.minValues > 0 {
			return true
		}
	}
	return false
}

// Labels returns the labels that r fixes to one value.
func (r Requirements) Labels() map[string]string {
	out := map[string]string{}
	for key, values := range r {
		if value, ok := values.SingleValue(); ok && key != corev1.LabelHostname {
			out[key] = value
		}
	}
	return out
}

// FixCustomLabels sets each custom label that must be present to one of its allowed values. An
// instance sets its well-known labels itself, but a custom label would otherwise be missing, so that
// its pods would not fit. It removes labels that lifecycle sets later.
func (r Requirements) FixCustomLabels() {
	maps.DeleteFunc(r, func(key string, _ Values) bool { return RegistrationLabels[key].listed != nil })
	for key, values := range r {
		if !karpenter.IsWellKnownLabel(key) && !values.absent {
			r[key] = In(values.pickValue()).WithMinValues(values.minValues)
		}
	}
}

// pickValue returns one value of the set, always the same one; "" for the empty set.
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
	// Each excluded value costs at most one step.
	for n, tries := start, len(v.listed)+1; tries > 0; n, tries = n+step, tries-1 {
		if text := strconv.FormatInt(n, 10); v.Has(text) {
			return text
		}
	}
	return ""
}

// NodeSelectorRequirements returns the requirements in the form of a NodeClaim, sorted by key. Keys
// that allow every value are left out.
func (r Requirements) NodeSelectorRequirements() []karpenter.NodeSelectorRequirementWithMinValues {
	var out []karpenter.NodeSelectorRequirementWithMinValues
	for _, key := range slices.Sorted(maps.Keys(r)) {
		out = append(out, r[key].nodeSelectorRequirements(key)...)
	}
	return out
}

// nodeSelectorRequirements converts one key. A set of numbers may need up to three requirements.
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
		// NotIn alone would allow a missing label.
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

// String returns the set as a user would write it.
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

// RegistrationLabels are the labels that lifecycle sets on the Node of each NodeClaim before pods run
// there. Pods and daemons may select them; NodeClaims do not state them, because they depend on the
// progress of the node. Karpenter: pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go.
var RegistrationLabels = Requirements{karpenter.NodeRegisteredLabelKey: In("true"), karpenter.NodeInitializedLabelKey: In("true")}

// InstanceTenancy returns the tenancy with which instances are launched under these requirements:
// dedicated only if the requirements exclude default (Karpenter: pkg/providers/instance/instance.go,
// getTenancyType).
func InstanceTenancy(reqs Requirements) string {
	values, stated := reqs[karpenter.LabelInstanceTenancy]
	if stated && !values.Has(karpenter.TenancyDefault) && values.Has(karpenter.TenancyDedicated) {
		return karpenter.TenancyDedicated
	}
	return karpenter.TenancyDefault
}
