package solver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// rejections say why a class found no place: one for each pool, or one for all
// when the reason lies in the pod.
func (r *rounds) rejections(c *class) []planning.Rejection {
	if c.problem != "" {
		return []planning.Rejection{{Rule: planning.RulePod, Detail: c.problem}}
	}
	if len(r.w.pools) == 0 {
		return []planning.Rejection{{Rule: planning.RuleNotReady, Detail: "the cluster has no NodePool that launches nodes for pods"}}
	}
	var out []planning.Rejection
	for _, p := range r.w.pools {
		out = append(out, r.reject(p, c))
	}
	return out
}

// reject finds the rule that stopped the class in a pool, by the alternative that
// was tried last.
func (r *rounds) reject(p *pool, c *class) planning.Rejection {
	w := r.w
	if p.refusal.Rule != "" {
		return p.refusal
	}
	if taint, kept := untolerated(p.taints, c.spec.Tolerations, c.wish.relaxed); kept {
		return p.because(planning.RuleTaints, "the pod does not tolerate %s", taint.ToString())
	}
	own := packing.NewSet(len(w.columns))
	for k := p.from; k < p.to; k++ {
		own.Add(k)
	}
	if own.Len() == 0 {
		return p.barren()
	}
	want := c.wish.anyOf[0]
	if key, found := p.base.FindConflict(want); found {
		return p.because(planning.RuleRequirements, "%s: the pod needs %s, the pool allows %s", key, want[key], p.base.AllowedValues(key))
	}
	sold := w.sold(own, c.reach)
	if sold.Len() == 0 {
		return w.noOffering(p, own, want)
	}
	return r.rejectNode(p, c, sold)
}

// rejectNode finds what keeps a node of the types from being launched for the class.
func (r *rounds) rejectNode(p *pool, c *class, sold packing.Set) planning.Rejection {
	w := r.w
	large := packing.NewSet(len(w.columns))
	sold.Each(func(k int) bool {
		if c.need.fits(w.problem.Columns[k].Room) {
			large.Add(k)
		}
		return true
	})
	switch {
	case large.Len() == 0:
		return w.tooSmall(p, c, sold)
	case r.packer.Spent():
		return p.because(planning.RuleBudget, "the work budget ran out before the pod's turn came; the next batch goes on from here")
	case !r.any(large, r.packer.Buyable):
		return w.overLimits(p, large, r.packer.Quota(p.index))
	case !r.any(large, func(k int) bool { return r.packer.Addressable(k, c.reach.planes) }):
		return p.because(planning.RuleAddresses, "no zone of the pool has an address left in its subnets, or a place in its placement group")
	case c.stuck != "" || len(c.closed) > 0 || len(c.own.hosts) > 0:
		return p.because(planning.RuleTopology, "%s", w.crowded(c))
	default:
		return p.because(planning.RulePod, "a new node would hold it, but not beside the pool's daemons (host ports), or not with minValues")
	}
}

// any reports whether something holds for a column of the set.
func (r *rounds) any(columns packing.Set, holds func(k int) bool) bool {
	found := false
	columns.Each(func(k int) bool {
		found = holds(k)
		return !found
	})
	return found
}

func (p *pool) because(rule, format string, args ...any) planning.Rejection {
	return planning.Rejection{NodePool: p.name, Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

func (p *pool) barren() planning.Rejection {
	out := p.because(planning.RuleNoOffering, "no instance type suits the pool's own requirements, zones and images")
	if p.soldOut > 0 {
		out = p.because(planning.RuleNoOffering, "none of the pool's %d instance types can be bought at the moment", p.soldOut)
	}
	out.LacksInstanceTypes = true
	return out
}

// sold are the columns of a set that the reach allows and that can be bought there.
func (w *world) sold(own packing.Set, r *reach) packing.Set {
	out := packing.NewSet(len(w.columns))
	own.And(r.columns).Each(func(k int) bool {
		for _, o := range w.problem.Columns[k].Offers {
			if r.planes&(1<<o.Plane) != 0 {
				out.Add(k)
			}
		}
		return true
	})
	return out
}

// noOffering looks for the one requirement without which a type would suit.
func (w *world) noOffering(p *pool, own packing.Set, want planning.Requirements) planning.Rejection {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		rest := maps.Clone(want)
		delete(rest, key)
		one := &reach{want: rest, planes: w.planesOf(rest), tolerate: everything}
		one.columns = w.columnsOf(one)
		if w.sold(own, one).Len() > 0 {
			return p.because(planning.RuleNoOffering, "no offering of the pool has %s %s beside the pod's other requirements", key, want[key])
		}
	}
	return p.because(planning.RuleNoOffering, "no offering of the pool satisfies the pod's requirements together")
}

// tooSmall names the type that comes closest, and what it lacks.
func (w *world) tooSmall(p *pool, c *class, sold packing.Set) planning.Rejection {
	closest, index, least := -1, -1, 2.0
	sold.Each(func(k int) bool {
		if i, share := c.need.short(w.problem.Columns[k].Room); i >= 0 && share < least {
			closest, index, least = k, i, share
		}
		return true
	})
	if index < 0 {
		return p.because(planning.RuleResources, "the daemons leave no room on any instance type")
	}
	name := w.axis.names[index]
	needs, has := quantity(name, c.need[index]), quantity(name, max(0, w.problem.Columns[closest].Room[index]))
	return p.because(planning.RuleResources, "%s: the pod needs %s, and the closest type, %s, has %s beside the daemons",
		name, needs.String(), w.columns[closest].typ.Name, has.String())
}

// overLimits names the limit that the smallest type which holds the pod exceeds.
func (w *world) overLimits(p *pool, large packing.Set, left packing.Pool) planning.Rejection {
	if left.Nodes <= 0 {
		return p.because(planning.RuleLimits, "limits.nodes is reached")
	}
	if detail := w.overPrice(p, large, left); detail != "" {
		return p.because(planning.RuleLimits, "%s", detail)
	}
	smallest := -1
	large.Each(func(k int) bool {
		if smallest < 0 || slices.Compare(w.problem.Columns[k].Capacity, w.problem.Columns[smallest].Capacity) < 0 {
			smallest = k
		}
		return true
	})
	capacity := w.problem.Columns[smallest].Capacity
	for i, name := range w.axis.names {
		if left.Left[i] != packing.Unlimited && capacity[i] > left.Left[i] {
			rest, has := quantity(name, max(0, left.Left[i])), quantity(name, capacity[i])
			return p.because(planning.RuleLimits, "limits.%s leaves %s, and %s has %s", name, rest.String(), w.columns[smallest].typ.Name, has.String())
		}
	}
	return p.because(planning.RuleLimits, "another node would exceed the pool's limits")
}

// crowded names the rules over other pods that were in the way.
func (w *world) crowded(c *class) string {
	var parts []string
	for _, g := range c.own.groups {
		switch g.kind {
		case spreadKind:
			parts = append(parts, fmt.Sprintf("its spread over %s allows a skew of %d, and the other domains have no room", g.key, g.skew))
		case besideKind:
			parts = append(parts, "no pod that its affinity over "+g.key+" selects is where a node could be")
		case apartKind:
			parts = append(parts, "every "+g.key+" has a pod that its anti-affinity selects")
		}
	}
	for _, h := range c.own.hosts {
		if h.kind == besideKind {
			parts = append(parts, "no node with a pod that its affinity over host names selects has room")
		}
	}
	for _, g := range c.set.counted {
		if g.kind == apartKind {
			parts = append(parts, "pods with anti-affinity to it over "+g.key+" keep it out")
		}
	}
	if len(parts) == 0 {
		return "no domain has room"
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}
