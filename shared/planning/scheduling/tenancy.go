package scheduling

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Tenancy is the tenancy that instances with these requirements are launched with:
// dedicated only if the requirements exclude default
// (Karpenter: pkg/providers/instance/instance.go, getTenancyType).
func Tenancy(reqs Requirements) string {
	values, stated := reqs[karpenter.LabelInstanceTenancy]
	if stated && !values.Has(karpenter.TenancyDefault) && values.Has(karpenter.TenancyDedicated) {
		return karpenter.TenancyDedicated
	}
	return karpenter.TenancyDefault
}

// chooseTenancy fixes the tenancy of nodes that may have either while no pod asks
// for one: they have the default.
func (p *pool) chooseTenancy(named namedLabels) {
	_, asked := named[karpenter.LabelInstanceTenancy]
	p.plainTenancy = !asked && !slices.ContainsFunc(p.object.Spec.Template.Spec.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == karpenter.LabelInstanceTenancy
	})
	if p.plainTenancy {
		p.base.and(karpenter.LabelInstanceTenancy, In(karpenter.TenancyDefault))
	}
}

// unstateTenancy leaves out of a node's requirements the tenancy that neither a pod
// nor the pool asks for.
func (p *pool) unstateTenancy(reqs Requirements) {
	if p.plainTenancy {
		delete(reqs, karpenter.LabelInstanceTenancy)
	}
}

// tenancyOpen reports whether nodes of the column are dedicated only because some
// pod asks for that: the pool also allows the default.
func (c *column) tenancyOpen() bool {
	return Tenancy(c.pool.variants[c.variant]) != Tenancy(c.pool.base)
}

// settleTenancy decides the tenancy of a node whose NodePool leaves it open. It is the
// default, unless a pod on the node requires dedicated tenancy, or the default tenancy would
// bring other daemons than those that the pods were placed with.
func (w *world) settleTenancy(c *column, reqs Requirements) {
	if !c.tenancyOpen() {
		return
	}
	shared := reqs.And(karpenter.LabelInstanceTenancy, In(karpenter.TenancyDefault))
	reqs.and(karpenter.LabelInstanceTenancy, In(karpenter.TenancyDedicated))
	taints := c.pool.taints
	if !shared[karpenter.LabelInstanceTenancy].Empty() && slices.Equal(w.overhead(taints, shared), w.overhead(taints, reqs)) {
		reqs[karpenter.LabelInstanceTenancy] = shared[karpenter.LabelInstanceTenancy]
	}
}
