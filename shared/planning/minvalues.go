package planning

// LowerMinValues lowers each minValues to the number of different values that the node's offerings
// have, as the MinValuesPolicy BestEffort allows, and sets MinValuesRelaxed if it changed any. The API
// server rejects a NodeClaim that lists fewer values than its minValues. label returns a label of an
// offering's instance type. Karpenter: InstanceTypes.SatisfiesMinValues in pkg/cloudprovider/types.go.
func (n *PlannedNode) LowerMinValues(label func(o PricedOffering, key string) (value string, ok bool)) {
	counts := map[string]int{}
	for key, values := range n.Requirements {
		if values.MinValues() > 0 {
			counts[key] = countValues(n.Offerings, key, label)
		}
	}
	reqs := n.Requirements.Clone()
	if reqs.LowerMinValues(counts) {
		n.Requirements, n.MinValuesRelaxed = reqs, true
	}
}

// countValues returns the number of different values of a label in the offerings.
func countValues(options []PricedOffering, key string, label func(PricedOffering, string) (string, bool)) int {
	seen := map[string]bool{}
	for _, o := range options {
		value, ok := label(o, key)
		if !ok {
			value = o.Label(key)
		}
		if value != "" {
			seen[value] = true
		}
	}
	return len(seen)
}

// LowerMinValues lowers the minValues of each label to its count, in place, and reports whether it
// changed any.
func (r Requirements) LowerMinValues(counts map[string]int) (lowered bool) {
	for key, count := range counts {
		if values := r[key]; values.MinValues() > count {
			r[key], lowered = values.WithMinValues(count), true
		}
	}
	return lowered
}
