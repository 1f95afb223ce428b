package planvalidator

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// place is one way to launch a node: an offering of a type in a pool.
type place struct {
	pool     *NodePool
	machine  *InstanceType
	offering *Offering
	fixed    labels.Set
	// open are the labels that the pool allows several values for; the launch
	// decides on one.
	open []string
}

// places are all ways to launch, in the order of the scenario, whether they are
// available or not.
func (s *Scenario) places() []place {
	var all []place
	for i := range s.NodePools {
		for j := range s.InstanceTypes {
			for k := range s.InstanceTypes[j].Offerings {
				if p, ok := newPlace(&s.NodePools[i], &s.InstanceTypes[j], &s.InstanceTypes[j].Offerings[k]); ok {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// newPlace fails when the pool's requirements, or the labels of its template, refuse
// the machine.
func newPlace(pool *NodePool, machine *InstanceType, offering *Offering) (place, bool) {
	p := place{pool: pool, machine: machine, offering: offering, fixed: determined(pool, machine, offering)}
	for name, value := range pool.Spec.Template.Metadata.Labels {
		if p.fixed[stable(name)] != value {
			return place{}, false
		}
	}
	if len(machine.OS) > 1 {
		p.open = append(p.open, corev1.LabelOSStable)
	}
	for _, r := range pool.Spec.Template.Spec.Requirements {
		name := stable(r.Key)
		if _, set := p.fixed[name]; !set && !ofMachine(name) {
			if !slices.Contains(p.open, name) && r.Operator != corev1.NodeSelectorOpDoesNotExist {
				p.open = append(p.open, name)
			}
			continue
		}
		if !slices.Contains(p.open, name) && !r.Match(p.fixed) {
			return place{}, false
		}
	}
	if len(p.open) > 0 && len(p.labelings(nil)) == 0 {
		return place{}, false
	}
	withAliases(p.fixed)
	return p, true
}

// labelingsMax bounds the search through the values of open labels.
const labelingsMax = 1 << 12

// labelings are the label sets that the node may get, seen from pods that name
// values of the open labels.
func (p place) labelings(pods []*corev1.Pod) []labels.Set {
	sets := []labels.Set{p.fixed}
	for _, name := range p.open {
		var next []labels.Set
		for _, set := range sets {
			if name != corev1.LabelOSStable && p.admits(name, set) {
				next = append(next, set)
			}
			for _, value := range p.values(name, pods) {
				one := maps.Clone(set)
				one[name] = value
				if p.admits(name, one) && len(next) < labelingsMax {
					next = append(next, withAliases(one))
				}
			}
		}
		sets = next
	}
	return sets
}

// admits asks the pool's requirements on one label.
func (p place) admits(name string, set labels.Set) bool {
	for _, r := range p.pool.Spec.Template.Spec.Requirements {
		if stable(r.Key) == name && !r.Match(set) {
			return false
		}
	}
	return true
}

// values are candidates for an open label: those that the pool or a pod names,
// the numbers beside a bound, and one that nobody has named.
func (p place) values(name string, pods []*corev1.Pod) []string {
	var all []string
	if name == corev1.LabelOSStable {
		all = append(all, p.machine.OS...)
		return all
	}
	for _, r := range p.pool.Spec.Template.Spec.Requirements {
		if stable(r.Key) == name {
			all = append(all, near(r.Values)...)
		}
	}
	for _, pod := range pods {
		for _, r := range nodeRequirements(pod) {
			if stable(r.Key) == name {
				all = append(all, near(r.Values)...)
			}
		}
	}
	all = append(all, "any", "0")
	slices.Sort(all)
	return slices.Compact(all)
}

// near are values and, for numbers, their neighbours.
func near(values []string) []string {
	out := slices.Clone(values)
	for _, v := range values {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			out = append(out, strconv.FormatInt(n-1, 10), strconv.FormatInt(n+1, 10))
		}
	}
	return out
}

// nodeRequirements are all lines of a pod's selector and required affinity,
// whatever their alternatives.
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
