package solver

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// maxVariants bounds the number of variants of one pool.
const maxVariants = 64

// namedLabels are what pods ask of custom labels, by key.
type namedLabels map[string]*namedLabel

// namedLabel is what pods ask of a custom label. All of it is empty for a topology key.
type namedLabel struct {
	values []string
	// bounds are the requirements with Gt and Lt.
	bounds []labelBound
	// present and absent report that a pod requires the label with any value, and that a pod requires its absence.
	present, absent bool
}

// labelBound is a requirement Gt or Lt, and the integer that it names.
type labelBound struct {
	operator corev1.NodeSelectorOperator
	value    string
}

// collectNamedLabels collects the labels from the pods' selectors, affinity and topology. addNodes adds those of running pods.
func collectNamedLabels(pending []planning.PodClass) namedLabels {
	out := namedLabels{}
	for i := range pending {
		spec := &pending[i].Spec
		for key, value := range spec.NodeSelector {
			out.addLabel(key, value)
		}
		for _, constraint := range spec.Spread {
			out.addLabel(constraint.TopologyKey)
		}
		if spec.Affinity != nil {
			out.addAffinity(spec.Affinity)
		}
	}
	return out
}

func (n namedLabels) addAffinity(a *corev1.Affinity) {
	if a.NodeAffinity != nil {
		for _, term := range requiredTerms(a) {
			n.addTerm(term)
		}
		for _, one := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			n.addTerm(one.Preference)
		}
	}
	for _, term := range listPodTerms(a) {
		n.addLabel(term.TopologyKey)
	}
}

func (n namedLabels) addTerm(term corev1.NodeSelectorTerm) {
	for _, one := range term.MatchExpressions {
		n.addExpression(one)
	}
}

func (n namedLabels) addExpression(e corev1.NodeSelectorRequirement) {
	switch e.Operator {
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		label := n.addLabel(e.Key)
		if label == nil || planning.NewValues(e.Operator, e.Values...).IsEmpty() {
			return
		}
		if bound := (labelBound{e.Operator, e.Values[0]}); !slices.Contains(label.bounds, bound) {
			label.bounds = append(label.bounds, bound)
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if label := n.addLabel(e.Key); label != nil {
			label.present = label.present || e.Operator == corev1.NodeSelectorOpExists
			label.absent = label.absent || e.Operator == corev1.NodeSelectorOpDoesNotExist
		}
	default:
		n.addLabel(e.Key, e.Values...)
	}
}

// addLabel adds values of a label, and returns the label; nil if it is not one that a NodePool may leave open.
func (n namedLabels) addLabel(key string, values ...string) *namedLabel {
	if !isChoosable(karpenter.NormalizeLabel(key)) || key == corev1.LabelHostname {
		return nil
	}
	label := n[key]
	if label == nil {
		label = &namedLabel{}
		n[key] = label
	}
	for _, value := range values {
		if planning.IsLabelValue(value) {
			label.values = append(label.values, value)
		}
	}
	return label
}

// isChoosable reports whether neither the instance type nor the offering sets the label: custom
// labels, the tenancy, and the partition of a placement group.
func isChoosable(key string) bool {
	return !karpenter.IsWellKnownLabel(key) || key == karpenter.LabelInstanceTenancy || key == karpenter.LabelPlacementGroupPartition
}

// listVariants splits the requirements of a pool's nodes by the values of custom labels that the pool
// leaves open and a pod asks for. All pods that accept some value of a variant accept one of its values
// together, so that a node has a value that suits all its pods.
func (w *state) listVariants(base planning.Requirements, named namedLabels) []planning.Requirements {
	out := []planning.Requirements{base}
	for _, key := range slices.Sorted(maps.Keys(named)) {
		values, ok := base[key]
		if !ok || !isChoosable(key) {
			continue
		}
		if _, single := values.SingleValue(); single {
			continue
		}
		out = splitByLabel(out, key, w.selectWindow(named[key].split(values), maxVariants/len(out)))
	}
	return out
}

// windowTime is how long one window of values is used before the next one.
const windowTime = 30 * time.Second

// selectWindow returns at most the given number of choices. Pods that ask for another value wait for a
// later batch: if the label were left open for them, pods that ask for different values would share a
// node. The window moves with the snapshot's time, so that pods which are never placed do not block
// other pods.
func (w *state) selectWindow(choices []planning.Values, most int) []planning.Values {
	if len(choices) <= most {
		return choices
	}
	turn := int(w.snapshot.TakenAt.Unix() / int64(windowTime/time.Second))
	start := turn * most % len(choices)
	return slices.Concat(choices, choices)[start : start+most]
}

// split returns the sets of values to distinguish: each value that a pod names or the pool lists, and sets of all
// others.
func (n *namedLabel) split(values planning.Values) []planning.Values {
	listed, finite := values.ListValues()
	var out []planning.Values
	for _, value := range planning.SortUnique(append(slices.Clone(listed), n.values...)) {
		if values.Has(value) {
			out = append(out, planning.In(value))
		}
	}
	if finite {
		return out
	}
	rest := intersectEach([]planning.Values{values}, planning.NewValues(corev1.NodeSelectorOpNotIn, n.values...))
	if n.present && n.absent {
		rest = intersectEach(rest, planning.AbsentValue(), planning.NewValues(corev1.NodeSelectorOpExists))
	}
	for _, b := range n.bounds {
		opposite := karpenter.NodeSelectorOpGte
		if b.operator == corev1.NodeSelectorOpGt {
			opposite = karpenter.NodeSelectorOpLte
		}
		rest = intersectEach(rest, planning.AbsentValue(), planning.NewValues(b.operator, b.value), planning.NewValues(opposite, b.value))
	}
	return append(out, rest...)
}

// intersectEach returns the intersections of each set with each part, without empty ones.
func intersectEach(sets []planning.Values, parts ...planning.Values) []planning.Values {
	var out []planning.Values
	for _, set := range sets {
		for _, part := range parts {
			if both := set.Intersect(part); !both.IsEmpty() {
				out = append(out, both)
			}
		}
	}
	return out
}

func splitByLabel(sets []planning.Requirements, key string, choices []planning.Values) []planning.Requirements {
	if len(choices) == 0 {
		return sets
	}
	var out []planning.Requirements
	for _, set := range sets {
		for _, choice := range choices {
			out = append(out, set.WithRequirement(key, choice))
		}
	}
	return out
}
