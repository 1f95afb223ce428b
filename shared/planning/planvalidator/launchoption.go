package planvalidator

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// launchOption is an offering of a type in a NodePool.
type launchOption struct {
	pool     *NodePool
	machine  *InstanceType
	offering *Offering
	fixed    labels.Set
	// open are the labels with several allowed values; the launch chooses one.
	open []string
}

// launchOptions returns all ways to launch a node in the order of the scenario, available or not.
func (s *Scenario) launchOptions() []launchOption {
	var all []launchOption
	for i := range s.NodePools {
		for j := range s.InstanceTypes {
			for k := range s.InstanceTypes[j].Offerings {
				if p, ok := newLaunchOption(&s.NodePools[i], &s.InstanceTypes[j], &s.InstanceTypes[j].Offerings[k]); ok {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// newLaunchOption returns false if the requirements or template labels of the NodePool exclude the machine.
func newLaunchOption(pool *NodePool, machine *InstanceType, offering *Offering) (launchOption, bool) {
	p := launchOption{pool: pool, machine: machine, offering: offering, fixed: fixedLabels(pool, machine, offering)}
	for name, value := range pool.Spec.Template.Metadata.Labels {
		if p.fixed[stableLabel(name)] != value {
			return launchOption{}, false
		}
	}
	if len(machine.OS) > 1 {
		p.open = append(p.open, corev1.LabelOSStable)
	}
	for _, r := range pool.Spec.Template.Spec.Requirements {
		name := stableLabel(r.Key)
		if _, set := p.fixed[name]; !set && !isMachineLabel(name) {
			if !slices.Contains(p.open, name) && r.Operator != corev1.NodeSelectorOpDoesNotExist {
				p.open = append(p.open, name)
			}
			continue
		}
		if !slices.Contains(p.open, name) && !r.Matches(p.fixed) {
			return launchOption{}, false
		}
	}
	if len(p.open) > 0 && len(p.possibleLabels(nil)) == 0 {
		return launchOption{}, false
	}
	withAliases(p.fixed)
	return p, true
}

// maxLabelSets bounds the search through values of open labels.
const maxLabelSets = 1 << 12

// possibleLabels returns the label sets that the node may get, given the values that pods name.
func (p launchOption) possibleLabels(pods []*corev1.Pod) []labels.Set {
	sets := []labels.Set{p.fixed}
	for _, name := range p.open {
		var next []labels.Set
		for _, set := range sets {
			if name != corev1.LabelOSStable && p.allowsLabel(name, set) {
				next = append(next, set)
			}
			for _, value := range p.candidateValues(name, pods) {
				one := maps.Clone(set)
				one[name] = value
				if p.allowsLabel(name, one) && len(next) < maxLabelSets {
					next = append(next, withAliases(one))
				}
			}
		}
		sets = next
	}
	return sets
}

// allowsLabel checks the NodePool's requirements for one label.
func (p launchOption) allowsLabel(name string, set labels.Set) bool {
	for _, r := range p.pool.Spec.Template.Spec.Requirements {
		if stableLabel(r.Key) == name && !r.Matches(set) {
			return false
		}
	}
	return true
}

// candidateValues returns candidates for an open label: values that the NodePool or a pod names, numbers next to a
// bound, and one other value.
func (p launchOption) candidateValues(name string, pods []*corev1.Pod) []string {
	var all []string
	if name == corev1.LabelOSStable {
		all = append(all, p.machine.OS...)
		return all
	}
	for _, r := range p.pool.Spec.Template.Spec.Requirements {
		if stableLabel(r.Key) == name {
			all = append(all, adjacentValues(r.Values)...)
		}
	}
	for _, pod := range pods {
		for _, r := range nodeRequirements(pod) {
			if stableLabel(r.Key) == name {
				all = append(all, adjacentValues(r.Values)...)
			}
		}
	}
	all = append(all, "any", "0")
	slices.Sort(all)
	return slices.Compact(all)
}

// adjacentValues returns values and, for numbers, their neighbours.
func adjacentValues(values []string) []string {
	out := slices.Clone(values)
	for _, v := range values {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			out = append(out, strconv.FormatInt(n-1, 10), strconv.FormatInt(n+1, 10))
		}
	}
	return out
}

// nodeRequirements returns all requirements of a pod's selector and required affinity terms.
func nodeRequirements(pod *corev1.Pod) []corev1.NodeSelectorRequirement {
	var all []corev1.NodeSelectorRequirement
	for name, value := range pod.Spec.NodeSelector {
		all = append(all, corev1.NodeSelectorRequirement{Key: name, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			all = append(all, term.MatchExpressions...)
		}
	}
	return all
}
