package planvalidator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// optionsMax is how many types a launch may name.
const optionsMax = 60

// options asks whether the launches could choose from as many types as the plan
// says, and whether those cover what the pools ask for at least.
func (w *world) options(out *report) {
	for _, n := range w.nodes {
		if n.plan == nil {
			continue
		}
		able := w.able(n)
		names := make([]string, 0, len(able))
		for _, t := range able {
			names = append(names, t.Name)
		}
		// What keeps the node from being an option is a violation of its own.
		own := slices.Contains(able, n.machine)
		if n.plan.Options < 1 || (own && n.plan.Options > min(optionsMax, len(able))) {
			out.add(Options, n.name, "the plan says %d, and %d types could hold its pods", n.plan.Options, len(able))
		}
		if listed := n.plan.OptionTypes; len(listed) > 0 {
			n.listed(listed, names, out)
			able = slices.DeleteFunc(able, func(t *InstanceType) bool { return !slices.Contains(listed, t.Name) })
		}
		n.minValues(able, out)
	}
}

// listed judges options that the plan names.
func (n *node) listed(listed, able []string, out *report) {
	if len(listed) != n.plan.Options {
		out.add(Options, n.name, "the plan says %d and names %d", n.plan.Options, len(listed))
	}
	if !slices.Contains(listed, n.machine.Name) {
		out.add(Options, n.name, "it is not one of its options")
	}
	for i, name := range listed {
		if !slices.Contains(able, name) {
			out.add(Options, n.name, "its option %s could not hold its pods", name)
		}
		if slices.Contains(listed[:i], name) {
			out.add(Options, n.name, "its option %s is named twice", name)
		}
	}
}

func (n *node) minValues(able []*InstanceType, out *report) {
	for _, r := range n.pool.Spec.Template.Spec.Requirements {
		if r.MinValues == nil {
			continue
		}
		different := map[string]bool{}
		for _, t := range able {
			for _, value := range t.valuesOf(n.pool, stable(r.Key)) {
				different[value] = true
			}
		}
		if len(different) < *r.MinValues {
			out.add(MinValues, n.name, "its options have %d different values of %s, and pool %s wants %d", len(different), r.Key, n.pool.Metadata.Name, *r.MinValues)
		}
	}
}

// valuesOf are the values of a label that the type could be launched with.
func (t *InstanceType) valuesOf(pool *NodePool, name string) []string {
	var all []string
	for i := range t.Offerings {
		if !t.Offerings[i].Available {
			continue
		}
		if p, ok := newPlace(pool, t, &t.Offerings[i]); ok {
			if value, present := p.fixed[name]; present {
				all = append(all, value)
			}
		}
	}
	return all
}

// able are the types that the node's pods could be on as well, whatever the zone
// and the capacity type.
func (w *world) able(n *node) []*InstanceType {
	var found []*InstanceType
	pods := demand(n.pods, nil)
	for i := range w.offered {
		p := &w.offered[i]
		if p.pool != n.pool || !p.offering.Available || (len(found) > 0 && found[len(found)-1] == p.machine) {
			continue
		}
		if name, over := exceeds(pods, w.room(i)); !over && name == "" && w.content(n, i) {
			found = append(found, p.machine)
		}
	}
	return found
}

// room is what a place has for pods once its daemons are there.
func (w *world) room(i int) corev1.ResourceList {
	if w.rooms == nil {
		w.rooms = make([]corev1.ResourceList, len(w.offered))
	}
	if w.rooms[i] == nil {
		p := &w.offered[i]
		meta := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: p.fixed}}
		var there []*pod
		for _, d := range w.daemons {
			if _, blocked := blocking(p.pool.Spec.Template.Spec.Taints, d.Spec.Tolerations); !blocked && d.selects(meta) {
				there = append(there, d)
			}
		}
		w.rooms[i] = less(p.machine.allocatable(), demand(nil, there))
	}
	return w.rooms[i]
}

// content reports whether all pods of a node would select a place as well.
func (w *world) content(n *node, i int) bool {
	p := &w.offered[i]
	sets := []map[string]string{p.fixed}
	if len(p.open) > 0 {
		sets = nil
		for _, set := range p.labelings(specs(n.pods)) {
			sets = append(sets, set)
		}
	}
	for _, set := range sets {
		meta := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: set}}
		if !slices.ContainsFunc(n.pods, func(one *pod) bool { return one.choosy() && !one.selects(meta) }) {
			return true
		}
	}
	return false
}
