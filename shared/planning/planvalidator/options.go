package planvalidator

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxOptions is the maximum number of types in a launch.
const maxOptions = 60

// checkLaunchOfferings checks the node as it would be with each of the offerings that the plan lists.
func (w *finalCluster) checkLaunchOfferings(n *node, out *report) {
	if n.plan == nil {
		return
	}
	for _, o := range n.plan.Offerings {
		p, ok := w.findOption(n.plan.NodePool, o.InstanceType, o.Zone, o.CapacityType)
		if !ok || !p.offering.Available {
			out.add(Offered, n.name, "the launch may choose %v, and pool %q has no such offering available", o, n.plan.NodePool)
			continue
		}
		if p.offering.Price < n.plan.Price-priceTolerance {
			out.add(Priced, n.name, "the launch may choose %v for %f, and the plan says that the cheapest costs %f", o, p.offering.Price, n.plan.Price)
		}
		launched := &node{name: fmt.Sprintf("%s as %v", n.name, o), launchOption: p, plan: n.plan, pods: n.pods}
		launched.setLabels(w.daemons)
		launched.checkLabels(out)
		launched.checkResources(out)
		launched.checkSelectors(out)
	}
}

// checkOptions checks that the launches could choose from as many types as the plan
// states, and that these meet the pools' minValues.
func (w *finalCluster) checkOptions(out *report) {
	for _, n := range w.nodes {
		if n.plan == nil {
			continue
		}
		able := w.fittingTypes(n)
		names := make([]string, 0, len(able))
		for _, t := range able {
			names = append(names, t.Name)
		}
		// If the node's own type is not an option, another rule reports the reason.
		own := slices.Contains(able, n.machine)
		if n.plan.Options < 1 || (own && n.plan.Options > min(maxOptions, len(able))) {
			out.add(Options, n.name, "the plan says %d, and %d types could hold its pods", n.plan.Options, len(able))
		}
		if listed := n.plan.OptionTypes; len(listed) > 0 {
			n.checkListedTypes(listed, names, out)
		}
		if len(n.plan.OptionTypes)+len(n.plan.Offerings) > 0 {
			able = slices.DeleteFunc(able, func(t *InstanceType) bool { return !n.mayBe(t.Name) })
		}
		n.checkMinValues(able, out)
	}
}

// checkListedTypes checks the options that the plan names.
func (n *node) checkListedTypes(listed, able []string, out *report) {
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
			out.add(Options, n.name, "option %s is named twice", name)
		}
	}
}

// checkMinValues checks that the types have enough different values, and the NodeClaim's own minValues as the API
// server validates them.
func (n *node) checkMinValues(able []*InstanceType, out *report) {
	for _, r := range n.plan.Requirements {
		if least := r.MinValues; least != nil && (*least < 1 || *least > 50 || r.Operator == corev1.NodeSelectorOpIn && len(r.Values) < *least) {
			out.add(MinValues, n.name, "the NodeClaim requires %d values of %s and lists %v", *least, r.Key, r.Values)
		}
	}
	for _, r := range n.pool.Spec.Template.Spec.Requirements {
		if r.MinValues == nil {
			continue
		}
		different := map[string]bool{}
		for _, t := range able {
			for _, value := range t.valuesOf(n.pool, stableLabel(r.Key)) {
				different[value] = true
			}
		}
		if len(different) < *r.MinValues {
			out.add(MinValues, n.name, "its options have %d different values of %s, and pool %s wants %d", len(different), r.Key, n.pool.Metadata.Name, *r.MinValues)
		}
	}
}

// valuesOf returns the values of a label with which the type could be launched.
func (t *InstanceType) valuesOf(pool *NodePool, name string) []string {
	var all []string
	for i := range t.Offerings {
		if !t.Offerings[i].Available {
			continue
		}
		if p, ok := newLaunchOption(pool, t, &t.Offerings[i]); ok {
			if value, present := p.fixed[name]; present {
				all = append(all, value)
			}
		}
	}
	return all
}

// fittingTypes returns the types on which all pods of the node fit, in any zone and capacity type.
func (w *finalCluster) fittingTypes(n *node) []*InstanceType {
	var found []*InstanceType
	pods := sumRequests(n.pods, nil)
	for i := range w.offered {
		p := &w.offered[i]
		if p.pool != n.pool || !p.offering.Available || (len(found) > 0 && found[len(found)-1] == p.machine) {
			continue
		}
		if name, over := exceededResource(pods, w.freeResources(i)); !over && name == "" && w.canHost(n, i) {
			found = append(found, p.machine)
		}
	}
	return found
}

// freeResources returns what daemons leave for pods.
func (w *finalCluster) freeResources(i int) corev1.ResourceList {
	if w.rooms == nil {
		w.rooms = make([]corev1.ResourceList, len(w.offered))
	}
	if w.rooms[i] == nil {
		p := &w.offered[i]
		meta := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: p.fixed}}
		var there []*pod
		for _, d := range w.daemons {
			if _, blocked := untoleratedTaint(p.pool.Spec.Template.Spec.Taints, d.Spec.Tolerations); !blocked && d.canRunOn(meta) {
				there = append(there, d)
			}
		}
		w.rooms[i] = subtractResources(p.machine.allocatable(), sumRequests(nil, there))
	}
	return w.rooms[i]
}

// canHost reports whether all pods of a node select the launch option.
func (w *finalCluster) canHost(n *node, i int) bool {
	p := &w.offered[i]
	sets := []map[string]string{p.fixed}
	if len(p.open) > 0 {
		sets = nil
		for _, set := range p.possibleLabels(podSpecs(n.pods)) {
			sets = append(sets, set)
		}
	}
	for _, set := range sets {
		meta := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: set}}
		if !slices.ContainsFunc(n.pods, func(one *pod) bool { return one.hasNodeConstraints() && !one.canRunOn(meta) }) {
			return true
		}
	}
	return false
}
