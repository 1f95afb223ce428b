package solver

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// addPartitions narrows the requirements of a pool's nodes to the partitions of its placement group, which has this
// many; nodes in a group without partitions, or in no group, do not have the label. It reports whether the pool allows
// every partition, so that EC2 may choose.
func addPartitions(reqs planning.Requirements, count int64) (open bool) {
	all := planning.AbsentValue()
	if count > 0 {
		var numbers []string
		for n := range count {
			numbers = append(numbers, strconv.FormatInt(n+1, 10))
		}
		all = planning.In(numbers...)
	}
	allowed, stated := reqs[karpenter.LabelPlacementGroupPartition]
	reqs.Add(karpenter.LabelPlacementGroupPartition, all)
	return !stated || all.IsSubset(allowed)
}

// dropPartition removes the partition from the requirements of a node without pods if EC2 may choose it.
func (p *pool) dropPartition(reqs planning.Requirements) {
	if p.openPartition {
		delete(reqs, karpenter.LabelPlacementGroupPartition)
	}
}

// chooseNodePartition leaves the partition of a node to EC2, which distributes instances over all partitions, unless the
// pool or a pod on the node allows only some partitions, or the node would run other daemons, or a spread constraint that
// counts only nodes of some partitions has counted the node's pods.
func (r *rounds) chooseNodePartition(c *candidate, bin *packing.Bin, reqs planning.Requirements) {
	const key = karpenter.LabelPlacementGroupPartition
	p := c.pool
	if !p.openPartition {
		return
	}
	open, asked := reqs.Clone(), planning.AnyValue()
	delete(open, key)
	for _, pods := range bin.Pods {
		if values, ok := r.assignments[pods.Group].feasible.requirements[key]; ok {
			asked = asked.Intersect(values)
			open[key] = asked // For example that the label exists.
		}
	}
	if all := p.requirements[key]; !all.AllowsAbsent() && !anyPartition.IsSubset(asked) {
		return
	} else if !p.variants[c.variant][key].Equals(all) {
		names := func(part planning.Requirements) bool { _, named := part[key]; return named }
		if r.isCountedIn(bin, names) || !slices.Equal(r.state.daemonOverhead(p.taints, open), r.state.daemonOverhead(p.taints, reqs)) {
			return
		}
	}
	delete(reqs, key)
	if values, named := open[key]; named {
		reqs[key] = values
	}
}

// anyPartition is what a node in a partition that EC2 chooses guarantees.
var anyPartition = planning.NewValues(corev1.NodeSelectorOpExists)

// isUnknownPartition reports whether the label of a node is a partition that EC2 chose and that lifecycle does not know
// yet.
func isUnknownPartition(key, value string) bool {
	return value == "" && key == karpenter.LabelPlacementGroupPartition
}

// allowsLabel reports whether the values allow the label of a node. An unknown partition may be any.
func allowsLabel(values planning.Values, key, value string) bool {
	if isUnknownPartition(key, value) {
		return anyPartition.IsSubset(values)
	}
	return values.Has(value)
}
