package solver

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// maxAlternatives bounds the alternatives of one pod: node affinity terms times the alternatives of
// its volumes.
const maxAlternatives = 64

// preferences is what a pod currently asks for. Preferences are required at first, and dropped one by
// one while the pod cannot be placed.
type preferences struct {
	// anyOf are the alternatives for the required node labels, in the order of the pod's terms. The
	// first one is used.
	anyOf []planning.Requirements
	// affinity and antiAffinity are preferred pod affinity terms, and nodePreferences are preferred
	// node labels, each sorted by weight, the heaviest first.
	affinity, antiAffinity []corev1.PodAffinityTerm
	nodePreferences        []planning.Requirements
	// softSpread are the spread constraints with ScheduleAnyway.
	softSpread []corev1.TopologySpreadConstraint
	// toleratesSoftTaints tolerates PreferNoSchedule taints.
	toleratesSoftTaints bool
	// alternatives are the original terms of anyOf. After all preferences are dropped, the terms that
	// were dropped before them are tried again. Karpenter does not do that.
	alternatives []planning.Requirements
}

// newPreferences reads a pod's preferences, or returns why no node can ever hold it. If ignore is set,
// it reads only requirements.
func newPreferences(spec *planning.PodSpec, ignore bool) (w preferences, problem string) {
	if w.anyOf, problem = requiredAlternatives(spec); problem != "" {
		return w, problem
	}
	w.alternatives = w.anyOf
	if ignore {
		return w, ""
	}
	for _, constraint := range spec.Spread {
		if constraint.WhenUnsatisfiable == corev1.ScheduleAnyway {
			w.softSpread = append(w.softSpread, constraint)
		}
	}
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			w.affinity = sortByWeight(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			w.antiAffinity = sortByWeight(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.NodeAffinity != nil {
			w.nodePreferences = sortPreferredNodes(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	return w, ""
}

// relaxNext drops one preference or alternative; it returns false if nothing is left to drop.
func (w *preferences) relaxNext(soft bool) bool {
	switch {
	case len(w.anyOf) > 1:
		w.anyOf = w.anyOf[1:]
	case len(w.affinity) > 0:
		w.affinity = w.affinity[1:]
	case len(w.antiAffinity) > 0:
		w.antiAffinity = w.antiAffinity[1:]
	case len(w.nodePreferences) > 0:
		w.nodePreferences = w.nodePreferences[1:]
	case len(w.softSpread) > 0:
		w.softSpread = w.softSpread[1:]
	case soft && !w.toleratesSoftTaints:
		w.toleratesSoftTaints = true
	case len(w.alternatives) > 1:
		w.anyOf, w.alternatives = w.alternatives, nil
	default:
		return false
	}
	return true
}

// nodeRequirements returns the current requirements on node labels. Only the heaviest remaining
// preference counts.
func (w *preferences) nodeRequirements() planning.Requirements {
	if len(w.nodePreferences) > 0 {
		return w.anyOf[0].Intersect(w.nodePreferences[0])
	}
	return w.anyOf[0]
}

// requiredAlternatives returns the alternatives for everything that the pod requires of node labels:
// its node selector, one of its affinity terms, and one alternative of each volume.
func requiredAlternatives(spec *planning.PodSpec) (anyOf []planning.Requirements, problem string) {
	if anyOf, problem = affinityAlternatives(spec); problem != "" {
		return nil, problem
	}
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		switch {
		case volume.Problem != "":
			return nil, "volume claim " + volume.Claim + ": " + volume.Problem
		case len(volume.Alternatives) > 0:
			anyOf = combineTerms(anyOf, volume.Alternatives)
		}
	}
	return anyOf, ""
}

// affinityAlternatives returns the alternatives of the pod's node selector and required node
// affinity, without its volumes. Daemons and the domains of topology spread ignore volumes, as in
// kube-scheduler.
func affinityAlternatives(spec *planning.PodSpec) (anyOf []planning.Requirements, problem string) {
	anyOf = []planning.Requirements{planning.NewLabelRequirements(spec.NodeSelector)}
	if terms := requiredTerms(spec.Affinity); terms != nil {
		anyOf = combineTerms(anyOf, terms)
	}
	if len(anyOf) == 0 {
		return nil, "no term of its required node affinity can match a node"
	}
	return anyOf, ""
}

// requiredTerms returns the required node affinity terms; nil if there is no required node affinity.
// An affinity without usable terms matches no node, as in Kubernetes.
func requiredTerms(affinity *corev1.Affinity) []corev1.NodeSelectorTerm {
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	selector := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if selector == nil {
		return nil
	}
	return slices.DeleteFunc(append([]corev1.NodeSelectorTerm{}, selector.NodeSelectorTerms...), func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions) == 0 // No new node meets a term of fields, which are the names of nodes.
	})
}

// combineTerms returns each set with each term, at most maxAlternatives. Combinations that no node can meet are left out; if
// there are no others, they are returned, so that the pod's rejection names the conflict.
func combineTerms(sets []planning.Requirements, terms []corev1.NodeSelectorTerm) []planning.Requirements {
	var out, impossible []planning.Requirements
	for _, set := range sets {
		for _, term := range terms {
			list := &out
			both := set.Intersect(planning.NewNodeSelectorTermRequirements(term))
			if both.IsImpossible() {
				list = &impossible
			}
			if len(*list) < maxAlternatives {
				*list = append(*list, both)
			}
		}
	}
	if len(out) == 0 {
		return impossible
	}
	return out
}

func sortPreferredNodes(terms []corev1.PreferredSchedulingTerm) []planning.Requirements {
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b corev1.PreferredSchedulingTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	var out []planning.Requirements
	for _, term := range sorted {
		out = append(out, planning.NewNodeSelectorTermRequirements(term.Preference))
	}
	return out
}

func sortByWeight(terms []corev1.WeightedPodAffinityTerm) []corev1.PodAffinityTerm {
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b corev1.WeightedPodAffinityTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	var out []corev1.PodAffinityTerm
	for _, term := range sorted {
		out = append(out, term.PodAffinityTerm)
	}
	return out
}

// listPodTerms returns all pod affinity and anti-affinity terms.
func listPodTerms(a *corev1.Affinity) []corev1.PodAffinityTerm {
	var out []corev1.PodAffinityTerm
	if a.PodAffinity != nil {
		out = append(out, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		out = append(out, sortByWeight(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	if a.PodAntiAffinity != nil {
		out = append(out, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		out = append(out, sortByWeight(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	return out
}
