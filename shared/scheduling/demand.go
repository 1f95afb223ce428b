package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// alternativesMax bounds how many ways to satisfy one pod are tried: node
// affinity terms times the alternatives of its volumes.
const alternativesMax = 64

// demand is a class of pods in the words of the packer.
type demand struct {
	spec     PodSpec
	requests amounts
	// levels are tried one after the other, each over all nodes and pools: what
	// the pod prefers is required at first, and then let go (B096, B097).
	levels []level
	rules  rules
	// ports is a copy of the spec's for speed of reading only.
	ports []HostPort
}

// level is what the pod asks for after some of its wishes were dropped.
type level struct {
	// anyOf are requirements of which one must hold; never empty.
	anyOf []Requirements
	// relaxed lets PreferNoSchedule taints pass.
	relaxed bool
}

// newDemand prepares a class; problem says why no node can ever hold it.
func newDemand(spec PodSpec, a axis, settings Settings) (d *demand, problem string) {
	if problem := unsupported(spec); problem != "" {
		return nil, problem
	}
	anyOf, problem := required(spec)
	if problem != "" {
		return nil, problem
	}
	rules, problem := newRules(spec)
	if problem != "" {
		return nil, problem
	}
	d = &demand{spec: spec, requests: a.of(spec.Requests), rules: rules, ports: spec.HostPorts}
	d.levels = levels(anyOf, spec.Affinity, settings)
	return d, ""
}

// required lists the ways to satisfy everything that the pod requires of a
// node's labels: its selector, one of its affinity terms (B095), and one
// alternative of each volume (B117, B118).
func required(spec PodSpec) (anyOf []Requirements, problem string) {
	anyOf = []Requirements{FromLabels(spec.NodeSelector)}
	if terms := requiredTerms(spec.Affinity); terms != nil {
		anyOf = product(anyOf, terms)
	}
	for _, volume := range spec.Volumes {
		if volume.Problem != "" {
			return nil, "volume claim " + volume.Claim + ": " + volume.Problem
		}
		if len(volume.Alternatives) > 0 {
			anyOf = product(anyOf, volume.Alternatives)
		}
	}
	if len(anyOf) == 0 {
		return nil, "its required node affinity has no terms that could match a node"
	}
	return anyOf, ""
}

// requiredTerms is nil when there is no required node affinity; one without
// usable terms matches nothing, as in Kubernetes.
func requiredTerms(affinity *corev1.Affinity) []corev1.NodeSelectorTerm {
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	selector := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if selector == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(selector.NodeSelectorTerms), func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0
	})
}

func product(sets []Requirements, terms []corev1.NodeSelectorTerm) []Requirements {
	var out []Requirements
	for _, set := range sets {
		for _, term := range terms {
			if len(out) < alternativesMax {
				out = append(out, set.Intersect(FromTerm(term)))
			}
		}
	}
	return out
}

// levels begins with the heaviest preference as a requirement, lets one go after
// the other, and in the end ignores PreferNoSchedule (B096, steps 4 and 6).
// PreferencePolicy Ignore starts without any (B066).
func levels(anyOf []Requirements, affinity *corev1.Affinity, settings Settings) []level {
	var out []level
	if settings.PreferencePolicy != "Ignore" && affinity != nil && affinity.NodeAffinity != nil {
		for _, term := range heaviestFirst(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) {
			out = append(out, level{anyOf: product(anyOf, []corev1.NodeSelectorTerm{term.Preference})})
		}
	}
	return append(out, level{anyOf: anyOf}, level{anyOf: anyOf, relaxed: true})
}

func heaviestFirst(terms []corev1.PreferredSchedulingTerm) []corev1.PreferredSchedulingTerm {
	out := slices.Clone(terms)
	slices.SortStableFunc(out, func(a, b corev1.PreferredSchedulingTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}
