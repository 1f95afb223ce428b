package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// chooseTenancy sets default tenancy for nodes that may have either, if neither the pool nor any pod
// asks for one.
func (p *pool) chooseTenancy(named namedLabels) {
	_, asked := named[karpenter.LabelInstanceTenancy]
	p.plainTenancy = !asked && !slices.ContainsFunc(p.object.Spec.Template.Spec.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == karpenter.LabelInstanceTenancy
	})
	if p.plainTenancy {
		p.requirements.Add(karpenter.LabelInstanceTenancy, planning.In(karpenter.TenancyDefault))
	}
}

// dropTenancy removes the tenancy from a node's requirements if neither the pool nor a pod asks for
// one.
func (p *pool) dropTenancy(reqs planning.Requirements) {
	if p.plainTenancy {
		delete(reqs, karpenter.LabelInstanceTenancy)
	}
}

// leavesTenancyOpen reports whether nodes of the candidate are dedicated only because a pod asks for
// that: the pool also allows default tenancy.
func (c *candidate) leavesTenancyOpen() bool {
	return planning.InstanceTenancy(c.pool.variants[c.variant]) != planning.InstanceTenancy(c.pool.requirements)
}

// chooseNodeTenancy decides the tenancy of a node whose NodePool leaves it open. It is the
// default, unless a pod on the node requires dedicated tenancy, the default tenancy would bring
// other daemons than the pods were placed with, or a spread constraint that counts dedicated nodes
// only has counted the node's pods.
func (r *rounds) chooseNodeTenancy(c *candidate, bin *packing.Bin, reqs planning.Requirements) {
	if !c.leavesTenancyOpen() {
		return
	}
	shared := reqs.WithRequirement(karpenter.LabelInstanceTenancy, planning.In(karpenter.TenancyDefault))
	reqs.Add(karpenter.LabelInstanceTenancy, planning.In(karpenter.TenancyDedicated))
	w, taints := r.state, c.pool.taints
	if !shared[karpenter.LabelInstanceTenancy].IsEmpty() && slices.Equal(w.daemonOverhead(taints, shared), w.daemonOverhead(taints, reqs)) && !r.isCountedIn(bin, isDedicated) {
		reqs[karpenter.LabelInstanceTenancy] = shared[karpenter.LabelInstanceTenancy]
	}
}

// isDedicated reports whether instances are launched with dedicated tenancy under these requirements.
func isDedicated(reqs planning.Requirements) bool {
	return planning.InstanceTenancy(reqs) == karpenter.TenancyDedicated
}

// isCountedIn reports whether a spread constraint that counts only nodes with certain requirements counts a pod of the
// bin; matches selects such requirements.
func (r *rounds) isCountedIn(bin *packing.Bin, matches func(planning.Requirements) bool) bool {
	return slices.ContainsFunc(bin.Pods, func(pods packing.GroupCount) bool {
		return slices.ContainsFunc(r.assignments[pods.Group].class.set.counted, func(g *group) bool {
			return g.region != nil && slices.ContainsFunc(g.region.parts, func(part *feasibleSet) bool { return matches(part.requirements) })
		})
	})
}
