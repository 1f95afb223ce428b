package planvalidator

import (
	"maps"
	"math"
	"slices"
)

// Check returns everything that is wrong with a plan, rule by rule and in the
// order of the plan; none for a valid one.
func Check(s *Scenario, r *Result) []Violation {
	out := &report{}
	w := newWorld(s, r, out)
	w.check(out)
	return *out
}

// check asks all rules of the cluster that the plan would make.
func (w *world) check(out *report) {
	w.sums(out)
	for _, n := range w.nodes {
		n.offering(out)
		n.resources(out)
		n.selectors(out)
		n.hostPorts(out)
	}
	w.options(out)
	w.limits(out)
	w.spread(out)
	w.affinity(out)
	w.antiAffinity(out)
}

// cent is how far prices may differ that are the same but for rounding, in US
// dollars an hour.
const cent = 1e-6

// sums compares what the plan says of itself with what it does.
func (w *world) sums(out *report) {
	r := w.result
	placed, dollars := 0, 0.0
	for _, n := range r.NewNodes {
		placed += len(n.Pods)
		dollars += n.Price
	}
	for _, name := range slices.Sorted(maps.Keys(r.ExistingNodes)) {
		if count := r.ExistingNodes[name]; count != len(r.ExistingPods[name]) {
			out.add(Once, name, "%d pods go there and %d are named", count, len(r.ExistingPods[name]))
		}
	}
	for _, pods := range r.ExistingPods {
		placed += len(pods)
	}
	for _, c := range []struct {
		what      string
		says, are int
	}{
		{"pods", r.Pods, len(w.scenario.Pods)},
		{"new nodes", r.Summary.NewNodes, len(r.NewNodes)},
		{"scheduled pods", r.Summary.Scheduled, placed},
		{"unscheduled pods", r.Summary.Unscheduled, len(r.Unscheduled)},
	} {
		if c.says != c.are {
			out.add(Sums, c.what, "the plan says %d and has %d", c.says, c.are)
		}
	}
	if math.Abs(dollars-r.Summary.DollarsPerHour) > cent*float64(1+len(r.NewNodes)) {
		out.add(Sums, "price", "the plan says %f and its nodes cost %f", r.Summary.DollarsPerHour, dollars)
	}
}

// offering asks whether the pool allows the node as it is labelled, and whether
// the price is that of the offering.
func (n *node) offering(out *report) {
	if n.plan == nil {
		return
	}
	for _, q := range n.pool.Spec.Template.Spec.Requirements {
		if !q.Match(n.labels()) {
			out.add(Offered, n.name, "pool %s requires %s %s %v of %q", n.pool.Metadata.Name, q.Key, q.Operator, q.Values, n.labels()[stable(q.Key)])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.plan.Labels)) {
		if is, says := n.labels()[name], n.plan.Labels[name]; is != says {
			out.add(Offered, n.name, "the plan says that its label %s is %q, and it is %q", name, says, is)
		}
	}
	if is := n.place.offering.Price; math.Abs(is-n.plan.Price) > cent {
		out.add(Priced, n.name, "the plan says %f and the offering costs %f", n.plan.Price, is)
	}
}
