package planvalidator

import (
	"maps"
	"math"
	"slices"
)

// CheckPlan returns all violations of a plan, by rule and in the order of the plan.
func CheckPlan(s *Scenario, r *Result) []Violation {
	out := &report{}
	w := newFinalCluster(s, r, out)
	w.checkAll(out)
	return *out
}

// checkAll checks all rules on the final cluster.
func (w *finalCluster) checkAll(out *report) {
	w.checkSums(out)
	for _, n := range w.nodes {
		n.checkOffering(out)
		n.checkResources(out)
		n.checkSelectors(out)
		n.checkHostPorts(out)
		w.checkLaunchOfferings(n, out)
	}
	w.checkOptions(out)
	w.checkLimits(out)
	w.checkPriceLimits(out)
	w.checkSpread(out)
	w.checkAffinity(out)
	w.checkAntiAffinity(out)
}

// priceTolerance is the rounding error of prices in US dollars per hour.
const priceTolerance = 1e-6

// checkSums compares the summary of the plan with its content.
func (w *finalCluster) checkSums(out *report) {
	r := w.result
	placed, dollars := 0, 0.0
	for _, n := range r.NewNodes {
		placed += len(n.Pods)
		dollars += n.Price
	}
	for _, name := range slices.Sorted(maps.Keys(r.ExistingNodes)) {
		if count := r.ExistingNodes[name]; count != len(r.ExistingPods[name]) {
			out.add(Once, name, "%d pods are counted and %d are named", count, len(r.ExistingPods[name]))
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
			out.add(Sums, c.what, "the summary says %d, the plan has %d", c.says, c.are)
		}
	}
	if math.Abs(dollars-r.Summary.DollarsPerHour) > priceTolerance*float64(1+len(r.NewNodes)) {
		out.add(Sums, "price", "the summary says %f, the nodes cost %f", r.Summary.DollarsPerHour, dollars)
	}
}

// checkOffering checks the requirements of the NodePool and the price of the offering.
func (n *node) checkOffering(out *report) {
	if n.plan == nil {
		return
	}
	n.checkLabels(out)
	if is := n.offering.Price; math.Abs(is-n.plan.Price) > priceTolerance {
		out.add(Priced, n.name, "the plan says %f, the offering costs %f", n.plan.Price, is)
	}
}

// checkLabels checks the labels of a planned node against its NodePool and the plan.
func (n *node) checkLabels(out *report) {
	for _, q := range n.pool.Spec.Template.Spec.Requirements {
		if !q.Matches(n.labels()) {
			out.add(Offered, n.name, "pool %s requires %s %s %v of %q", n.pool.Metadata.Name, q.Key, q.Operator, q.Values, n.labels()[stableLabel(q.Key)])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.plan.Labels)) {
		if is, says := n.labels()[name], n.plan.Labels[name]; is != says {
			out.add(Offered, n.name, "the plan sets the label %s to %q, want %q", name, says, is)
		}
	}
}
