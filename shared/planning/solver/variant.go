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

// namedLabels are the values of custom labels that pods ask for, by key. Topology keys have no values.
type namedLabels map[string][]string

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
		n.addLabel(one.Key, one.Values...)
	}
}

func (n namedLabels) addLabel(key string, values ...string) {
	if !isChoosable(karpenter.NormalizeLabel(key)) || key == corev1.LabelHostname {
		return
	}
	for _, value := range values {
		if planning.IsLabelValue(value) {
			n[key] = append(n[key], value)
		}
	}
	if n[key] == nil {
		n[key] = []string{}
	}
}

// isChoosable reports whether neither the instance type nor the offering sets the label: custom
// labels, and the tenancy.
func isChoosable(key string) bool {
	return !karpenter.IsWellKnownLabel(key) || key == karpenter.LabelInstanceTenancy
}

// listVariants splits the requirements of a pool's nodes by the values of custom labels that the pool
// leaves open and a pod asks for. A node gets one of the values, and pods that need another one cannot
// share it.
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
		out = splitByLabel(out, key, w.selectWindow(listVariantValues(values, named[key]), maxVariants/len(out)))
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

// listVariantValues returns the values to distinguish: values that pods name, values that the pool
// lists, and one for all others.
func listVariantValues(values planning.Values, named []string) []planning.Values {
	listed, finite := values.ListValues()
	var out []planning.Values
	for _, value := range planning.SortUnique(append(slices.Clone(listed), named...)) {
		if values.Has(value) {
			out = append(out, planning.In(value))
		}
	}
	if rest := values.Intersect(planning.NewValues(corev1.NodeSelectorOpNotIn, named...)); !rest.IsEmpty() && !finite {
		out = append(out, rest)
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
