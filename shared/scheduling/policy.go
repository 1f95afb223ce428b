package scheduling

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/scheduling/packing"
)

// policy is how the settings trade price for resilience.
func policy(s Settings) packing.Policy {
	out := packing.DefaultPolicy
	if s.MaxNodeShare > 0 {
		out.MaxShare = s.MaxNodeShare
	}
	if s.ResiliencePremium != nil {
		out.Premium = *s.ResiliencePremium
	}
	return out
}

// effort is one way of planning a batch.
type effort struct {
	// policy is the packer's; nil is that of the settings.
	policy *packing.Policy
	// limits says that it is for batches that limits keep pods out of.
	limits bool
	// pressed is whether pods were left out by the efforts before.
	pressed bool
	// contrary takes the last of domains that are equally good, not the first.
	contrary bool
	// order is that of the pods if they are placed one by one.
	order func(a, b *one) int
}

// efforts are made one after the other while pods are left out that might find a
// place; the plan that places most is taken. Which pods share what is scarce is a
// riddle that no order solves for all batches.
var efforts = []effort{
	{pressed: true},
	{policy: &tight, limits: true, pressed: true},
	{policy: &crowded, limits: true, pressed: true},
	{policy: &singly, pressed: true, order: byNeed},
	{policy: &singly, pressed: true, order: byNeed, contrary: true},
	{policy: &singly, limits: true, pressed: true, order: backwards},
	{policy: &singly, pressed: true, order: byRules},
	{policy: &singly, pressed: true, order: byRules, contrary: true},
}

// differs reports whether the effort could come to another plan than the one
// before.
func (e *effort) differs(w *world) bool {
	switch {
	case e.order != nil && !e.limits:
		return true
	case e.limits:
		return slices.ContainsFunc(w.pools, func(p *pool) bool { return len(p.object.Spec.Limits) > 0 })
	default:
		return slices.ContainsFunc(w.pools, func(p *pool) bool { return p.base.Demanding() }) || w.topology.shuts()
	}
}

// shuts reports whether any pods keep others out of a whole domain.
func (t *topology) shuts() bool {
	for _, g := range t.groups {
		if g.kind == apartKind && g.hard {
			return true
		}
	}
	return false
}

// tight is for batches that limits would leave pods out of: it fills few and large
// nodes.
var tight = packing.Policy{Tight: true, Effort: packing.DefaultPolicy.Effort, Budget: packing.DefaultPolicy.Budget}

// crowded is for batches that leave pods out even so: it has as many as possible.
var crowded = packing.Policy{Tight: true, SmallFirst: true, Budget: 200e6}

// singly is for pods that are placed one by one.
var singly = packing.Policy{Tight: true, Mixed: true, Budget: 200e6}
