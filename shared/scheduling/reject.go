package scheduling

import (
	"fmt"
	"maps"
	"slices"
)

// reach orders rules by how far a pod got before one stopped it.
var reach = []string{RuleNotReady, RuleTaints, RuleRequirements, RuleNoOffering, RuleResources, RuleLimits, RulePod}

// reject says why the pool takes no pod of d, by the alternative that came
// closest.
func (p *pool) reject(d *demand, a axis) Rejection {
	if p.refusal.Rule != "" {
		return p.refusal
	}
	last := d.levels[len(d.levels)-1]
	if taint, kept := untolerated(p.taints, d.spec.Tolerations, last.relaxed); kept {
		return p.because(RuleTaints, "the pod does not tolerate %s", taint.ToString())
	}
	if len(p.candidates) == 0 {
		return p.barren()
	}
	var nearest Rejection
	for _, want := range last.anyOf {
		if r := p.rejectOne(d, want, a); slices.Index(reach, r.Rule) > slices.Index(reach, nearest.Rule) {
			nearest = r
		}
	}
	return nearest
}

func (p *pool) because(rule, format string, args ...any) Rejection {
	return Rejection{NodePool: p.name, Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

func (p *pool) barren() Rejection {
	if p.soldOut > 0 {
		return p.because(RuleNoOffering, "none of the pool's %d instance types can be bought at the moment", p.soldOut)
	}
	return p.because(RuleNoOffering, "no instance type suits the pool's own requirements, zones and images")
}

// rejectOne narrows the pool's types step by step until none is left.
func (p *pool) rejectOne(d *demand, want Requirements, a axis) Rejection {
	if key, found := p.base.Conflict(want); found {
		return p.because(RuleRequirements, "%s: the pod needs %s, the pool allows %s", key, want[key], p.base.offered(key))
	}
	var sold, large []*candidate
	for i := range p.candidates {
		c := &p.candidates[i]
		reqs := p.base.Intersect(want)
		if !reqs.allows(c.labels) || !c.sold(reqs) {
			continue
		}
		if sold = append(sold, c); d.requests.fits(c.room) {
			large = append(large, c)
		}
	}
	switch {
	case len(sold) == 0:
		return p.noOffering(want)
	case len(large) == 0:
		return p.tooSmall(d, sold, a)
	case !slices.ContainsFunc(large, func(c *candidate) bool { return p.quota.holds(c.capacity) }):
		return p.overLimits(large, a)
	default:
		return p.because(RulePod, "a new node would hold it, but not beside the pool's daemons (host ports), or not with minValues")
	}
}

// noOffering looks for the one requirement without which a type would suit.
func (p *pool) noOffering(want Requirements) Rejection {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		rest := maps.Clone(want)
		delete(rest, key)
		reqs := p.base.Intersect(rest)
		if slices.ContainsFunc(p.candidates, func(c candidate) bool { return reqs.allows(c.labels) && c.sold(reqs) }) {
			return p.because(RuleNoOffering, "no offering of the pool has %s %s beside the pod's other requirements", key, want[key])
		}
	}
	return p.because(RuleNoOffering, "no offering of the pool satisfies the pod's requirements together")
}

// tooSmall names the type that comes closest, and what it lacks.
func (p *pool) tooSmall(d *demand, sold []*candidate, a axis) Rejection {
	closest, index, least := sold[0], -1, 2.0
	for _, c := range sold {
		if i, share := d.requests.short(c.room); i >= 0 && share < least {
			closest, index, least = c, i, share
		}
	}
	if index < 0 {
		return p.because(RuleResources, "the daemons leave no room on any instance type")
	}
	name := a.names[index]
	needs, has := quantity(name, d.requests[index]), quantity(name, max(0, closest.room[index]))
	return p.because(RuleResources, "%s: the pod needs %s, and the closest type, %s, has %s beside the daemons",
		name, needs.String(), closest.name, has.String())
}

// overLimits names the limit that the smallest type which holds the pod exceeds.
func (p *pool) overLimits(large []*candidate, a axis) Rejection {
	if p.quota.nodes <= 0 {
		return p.because(RuleLimits, "limits.nodes is reached")
	}
	c := large[0]
	for _, other := range large[1:] {
		if slices.Compare(other.capacity, c.capacity) < 0 {
			c = other
		}
	}
	for i, name := range a.names {
		if c.capacity[i] > p.quota.left[i] {
			left, has := quantity(name, max(0, p.quota.left[i])), quantity(name, c.capacity[i])
			return p.because(RuleLimits, "limits.%s leaves %s, and %s has %s", name, left.String(), c.name, has.String())
		}
	}
	return p.because(RuleLimits, "another node would exceed the pool's limits")
}
