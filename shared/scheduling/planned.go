package scheduling

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// planned is a node to launch that still takes pods. Growing one makes a new
// value and leaves the old as it was, so that a failure halfway changes nothing.
type planned struct {
	pool *pool
	reqs Requirements
	// taken is what the pods take; the daemons' part is in the candidates' room.
	taken amounts
	// left are the indexes of the pool's candidates that are still possible.
	left    []int
	ceiling amounts
	pods    []PlacedPod
	groups  []group
	ports   []HostPort
	// applied remembers which requirement sets have been intersected already, so
	// that the thousandth pod of a class costs one comparison of vectors.
	applied map[*demand]bool
	relaxed bool
}

// maxTypes is how many instance types a claim names, the cheapest ones (B090).
const maxTypes = 600

// placeholder is the host name of nodes to come: a pod that asks for a
// particular one must not be promised any of them.
const placeholder = "joist.sh/planned"

// open starts a node in the pool; reqs is what the first pod adds.
func (p *pool) open(a axis) *planned {
	_, ports := p.overhead(p.base, a)
	n := &planned{pool: p, reqs: p.base.And(corev1.LabelHostname, In(placeholder)), taken: make(amounts, len(a.names)), ports: ports}
	for i, c := range p.candidates {
		if p.quota.holds(c.capacity) {
			n.left = append(n.left, i)
		}
	}
	return n
}

// with is the node with one more pod, or nil when it does not fit.
func (n *planned) with(d *demand, l level, pod PlacedPod, s Settings) *planned {
	if _, kept := untolerated(n.pool.taints, d.spec.Tolerations, l.relaxed); kept {
		return nil
	}
	if clash(n.ports, d.ports) || !d.admits(n.groups) {
		return nil
	}
	for _, want := range l.anyOf {
		if grown := n.grow(d, want, s); grown != nil {
			grown.pods = append(slices.Clip(n.pods), pod)
			grown.groups = join(n.groups, d)
			grown.ports = append(slices.Clip(n.ports), d.ports...)
			return grown
		}
	}
	return nil
}

// grow narrows the node to what also holds d; nil when nothing does.
func (n *planned) grow(d *demand, want Requirements, s Settings) *planned {
	out := *n
	out.taken = n.taken.plus(d.requests)
	narrowed := !n.applied[d]
	if narrowed {
		if !n.reqs.Compatible(want) {
			return nil
		}
		out.reqs = n.reqs.Intersect(want)
		out.applied = maps.Clone(n.applied)
		if out.applied == nil {
			out.applied = map[*demand]bool{}
		}
		out.applied[d] = true
	}
	out.left = nil
	for _, i := range n.left {
		c := &n.pool.candidates[i]
		if out.taken.fits(c.room) && (!narrowed || out.reqs.allows(c.labels) && c.sold(out.reqs)) {
			out.left = append(out.left, i)
		}
	}
	if len(n.pods) == 0 {
		out.left = plain(n.pool, out.left)
	}
	if len(out.left) == 0 {
		return nil
	}
	if !out.varied() {
		if s.MinValuesPolicy != "BestEffort" {
			return nil
		}
		out.relaxed = true
	}
	out.ceiling = out.largest()
	return &out
}

// plain leaves out exotic types when ordinary ones would do (B188). It is done
// when a node is opened: otherwise a node would fill up until only they hold it.
func plain(p *pool, left []int) []int {
	ordinary := slices.DeleteFunc(slices.Clone(left), func(i int) bool { return p.candidates[i].exotic })
	if len(ordinary) == 0 {
		return left
	}
	return ordinary
}

// varied reports whether the types that are left cover every minValues (B005).
func (n *planned) varied() bool {
	for key, values := range n.reqs {
		if values.MinValues() == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, i := range n.left {
			n.pool.candidates[i].values(key, n.reqs, seen)
		}
		if len(seen) < values.MinValues() {
			return false
		}
	}
	return true
}

// values adds what the label may be on a node of the type.
func (c *candidate) values(key string, r Requirements, seen map[string]bool) {
	if value, ok := c.labels[key]; ok {
		seen[value] = true
		return
	}
	for _, o := range c.options(r) {
		if value := o.label(key); value != "" {
			seen[value] = true
		}
	}
}

// largest is the most of each resource that the node may turn out to have.
func (n *planned) largest() amounts {
	out := n.pool.candidates[n.left[0]].capacity
	for _, i := range n.left[1:] {
		out = out.most(n.pool.candidates[i].capacity)
	}
	return out
}

// options lists every way to buy the node, cheapest first: once the pods are
// settled, the smallest type that holds them all comes to the front.
func (n *planned) options() []Option {
	var out []Option
	for _, i := range n.left {
		out = append(out, n.pool.candidates[i].options(n.reqs)...)
	}
	slices.SortFunc(out, func(x, y Option) int {
		return cmp.Or(cmp.Compare(x.PricePerHour, y.PricePerHour), cmp.Compare(x.InstanceType, y.InstanceType),
			cmp.Compare(x.Zone, y.Zone), cmp.Compare(x.CapacityType, y.CapacityType))
	})
	return out
}

// finish turns a full node into what is to be launched. The types are written
// into the requirements (B090) before the daemons are summed up, so that a later
// batch, which has nothing but the claim, arrives at the same sum.
func (n *planned) finish(a axis) PlannedNode {
	options := n.options()
	var types []string
	for _, o := range options {
		if !slices.Contains(types, o.InstanceType) && len(types) < maxTypes {
			types = append(types, o.InstanceType)
		}
	}
	reqs := n.reqs.And(corev1.LabelInstanceTypeStable, In(types...))
	delete(reqs, corev1.LabelHostname)
	reqs.settle()
	daemons, _ := n.pool.overhead(reqs, a)
	return PlannedNode{
		NodePool: n.pool.name, NodeClass: n.pool.class, Requirements: reqs,
		Options: slices.DeleteFunc(options, func(o Option) bool { return !slices.Contains(types, o.InstanceType) }),
		Pods:    n.pods, Requests: a.list(n.taken.plus(daemons)), PricePerHour: options[0].PricePerHour, MinValuesRelaxed: n.relaxed,
	}
}

// join counts one more pod of d among the groups of a node.
func join(groups []group, d *demand) []group {
	out := slices.Clone(groups)
	for i := range out {
		if out[i].of == d {
			out[i].count++
			return out
		}
	}
	return append(out, group{of: d, spec: d.spec, rules: d.rules, count: 1})
}
