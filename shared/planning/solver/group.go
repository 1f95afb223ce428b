package solver

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// term is one rule as a pod states it.
type term struct {
	kind      kind
	key       string
	selection selection
	skew, min int
	hard      bool
	spread    *corev1.TopologySpreadConstraint
}

// terms are what the class's wish says of other pods, as it stands.
func (w *world) terms(c *class) (out []term, problem string) {
	spread := func(s *corev1.TopologySpreadConstraint, hard bool) {
		chosen, err := spreadSelection(s, c.spec)
		if err != nil {
			problem = fmt.Sprintf("its topology spread over %s has a selector that cannot be read: %v", s.TopologyKey, err)
		}
		one := term{kind: spreadKind, key: s.TopologyKey, selection: chosen, skew: int(s.MaxSkew), hard: hard, spread: s}
		if s.MinDomains != nil {
			one.min = int(*s.MinDomains)
		}
		out = append(out, one)
	}
	pods := func(kind kind, name string, hard bool, list []corev1.PodAffinityTerm) {
		for i := range list {
			chosen, err := w.termSelection(&list[i], c.spec)
			if err != nil {
				problem = fmt.Sprintf("its %s over %s: %v", name, list[i].TopologyKey, err)
			}
			out = append(out, term{kind: kind, key: list[i].TopologyKey, selection: chosen, hard: hard})
		}
	}
	for i := range c.spec.Spread {
		if c.spec.Spread[i].WhenUnsatisfiable == corev1.DoNotSchedule {
			spread(&c.spec.Spread[i], true)
		}
	}
	for i := range c.wish.anyway {
		spread(&c.wish.anyway[i], false)
	}
	if a := c.spec.Affinity; a != nil && a.PodAffinity != nil {
		pods(besideKind, "pod affinity", true, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	pods(besideKind, "preferred pod affinity", false, c.wish.beside)
	pods(apartKind, "pod anti-affinity", true, requiredApart(c.spec.Affinity))
	pods(apartKind, "preferred pod anti-affinity", false, c.wish.apart)
	return out, problem
}

func requiredApart(affinity *corev1.Affinity) []corev1.PodAffinityTerm {
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	return affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// bind works out which rules the class owns. Of a spread that counts no pod remains
// that nodes must have its label, and of such an anti-affinity nothing: to give its
// pods domains would keep them apart for no reason.
func (w *world) bind(c *class) {
	c.own = ownTerms{}
	if c.spec.Affinity == nil && len(c.spec.Spread) == 0 {
		return
	}
	terms, problem := w.terms(c)
	if problem != "" {
		c.problem = problem
		return
	}
	for _, t := range terms {
		if hostname(t.key) {
			c.own.hosts = append(c.own.hosts, w.host(t))
			continue
		}
		g := w.group(t, c)
		g.hard = g.hard || t.hard
		switch {
		case g.kind == besideKind || !g.idle():
			c.own.groups = append(c.own.groups, g)
		case g.kind == spreadKind:
			c.reach = w.labelled(c.reach, g.key)
		}
	}
}

// group finds or makes the group of a term.
func (w *world) group(t term, c *class) *group {
	t.key = karpenter.NormalizeLabel(t.key)
	id := fmt.Sprintf("%d\x00%s\x00%s\x00%d\x00%d\x00%t", t.kind, t.key, t.selection.key(), t.skew, t.min, t.hard)
	where := w.region(t.spread, c)
	if where != nil {
		id += "\x00" + where.key
	}
	everywhere := t.spread != nil && t.spread.NodeAffinityPolicy != nil && *t.spread.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	tolerated := t.spread != nil && t.spread.NodeTaintsPolicy != nil && *t.spread.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	id += fmt.Sprintf("\x00%t%t", everywhere, tolerated)
	var labels []string
	if t.spread != nil {
		labels = spreadLabels(c.spec)
	}
	if g, ok := w.topology.groups[id]; ok {
		return g
	}
	g := &group{
		id: len(w.topology.groups), kind: t.kind, key: t.key, skew: t.skew, min: t.min, where: where, everywhere: everywhere, tolerated: tolerated,
		labels: labels, members: map[*labelSet]bool{}, counts: map[string]int{}, owners: map[string]int{},
	}
	w.topology.groups[id] = g
	for _, set := range w.topology.sets.selected(t.selection) {
		g.members[set] = true
		set.counted = append(set.counted, g)
		for _, b := range set.bound {
			if domain, ok := w.nodes[b.node].domain(g.key); ok && (where == nil || where.nodes.Has(b.node)) {
				g.counts[domain] += b.count
			}
		}
	}
	if w.removal != nil {
		w.removal.count(g, id, t, c)
	}
	return g
}

// idle reports whether the group counts no pod, and never will.
func (g *group) idle() bool {
	for set := range g.members {
		if set.pending {
			return false
		}
	}
	return g.total() == 0
}

// spreadLabels are the custom labels that a node must have to count for the pod's
// required spread: all those that it is spread over.
func spreadLabels(spec *planning.PodSpec) []string {
	var out []string
	for i := range spec.Spread {
		key := karpenter.NormalizeLabel(spec.Spread[i].TopologyKey)
		if spec.Spread[i].WhenUnsatisfiable == corev1.DoNotSchedule && key != corev1.LabelHostname && !karpenter.WellKnownLabel(key) {
			out = append(out, key)
		}
	}
	return planning.SortUnique(out)
}

// labelled asks for the labels beside what is wanted.
func labelled(want planning.Requirements, labels []string) planning.Requirements {
	for _, key := range labels {
		want = want.WithRequirement(key, planning.NewValues(corev1.NodeSelectorOpExists))
	}
	return want
}

// host finds or makes the rule of a term over host names.
func (w *world) host(t term) *hostRule {
	id := fmt.Sprintf("%d\x00%s\x00%d\x00%t", t.kind, t.selection.key(), t.skew, t.hard)
	if h, ok := w.topology.hosts[id]; ok {
		return h
	}
	h := &hostRule{id: int32(len(w.topology.order)), kind: t.kind, skew: t.skew, soft: !t.hard}
	w.topology.hosts[id] = h
	w.topology.order = append(w.topology.order, h)
	for _, set := range w.topology.sets.selected(t.selection) {
		set.hosts = append(set.hosts, h)
		for _, b := range set.bound {
			w.tally(b.node, h.id).Members += int32(b.count)
		}
	}
	if w.removal != nil {
		w.removal.tally(w, h.id, t.selection)
	}
	return h
}

// rule says it in the packer's words. A node to come starts empty, so that the
// global minimum of a spread over host names is 0.
func (h *hostRule) rule() packing.Rule {
	switch h.kind {
	case apartKind:
		return packing.Rule{WithMember: 1, WithOther: 0, Soft: h.soft}
	case spreadKind:
		return packing.Rule{WithMember: int32(h.skew), WithOther: int32(h.skew), Soft: h.soft}
	default:
		return packing.Rule{WithMember: math.MaxInt32, WithOther: math.MaxInt32, Soft: true}
	}
}

func (w *world) tally(node int, rule int32) *packing.Tally {
	n := &w.problem.Nodes[node]
	for i := range n.Tallies {
		if n.Tallies[i].Rule == rule {
			return &n.Tallies[i]
		}
	}
	if w.removal != nil && len(n.Tallies) == 0 {
		w.removal.standing.tallied = append(w.removal.standing.tallied, node)
	}
	n.Tallies = append(n.Tallies, packing.Tally{Rule: rule})
	return &n.Tallies[len(n.Tallies)-1]
}

// eachBound visits the pods that run and stay.
func (w *world) eachBound(visit func(node, count int, spec *planning.PodSpec)) {
	for i := range w.problem.Nodes {
		node := w.nodes[i].node
		for _, list := range [][]planning.PodClass{node.Pods, node.DaemonPods} {
			for j := range list {
				if n := planning.CountNotTerminating(list[j].Pods); n > 0 {
					visit(i, n, &list[j].Spec)
				}
			}
		}
	}
}

// addBoundOwners reads the required anti-affinity of pods that run: it keeps the
// pods that it selects away. What selects no pending pod is left out.
func (w *world) addBoundOwners() {
	w.eachBound(func(node, count int, bound *planning.PodSpec) {
		for _, t := range requiredApart(bound.Affinity) {
			chosen, err := w.termSelection(&t, bound)
			if err != nil {
				continue // Kubernetes ignores a term that it cannot read.
			}
			if !slices.ContainsFunc(w.topology.sets.selected(chosen), func(s *labelSet) bool { return s.pending }) {
				continue
			}
			one := term{kind: apartKind, key: t.TopologyKey, selection: chosen, hard: true}
			if !hostname(t.TopologyKey) {
				g := w.group(one, nil)
				g.hard = true
				if domain, ok := w.nodes[node].domain(g.key); ok {
					g.owners[domain] += count
				}
				continue
			}
			tally := w.tally(node, w.host(one).id)
			if chosen.picks(w.topology.sets.of(bound.Namespace, bound.Labels)) {
				tally.Inside += int32(count)
			} else {
				tally.Outside += int32(count)
			}
		}
	})
}

// addPorts makes a rule of every host port that pending pods want.
func (w *world) addPorts() {
	for _, c := range w.classes {
		for _, port := range c.spec.HostPorts {
			id := fmt.Sprintf("port\x00%s\x00%d\x00%s", port.IP, port.Port, port.EffectiveProtocol())
			if w.topology.hosts[id] != nil {
				continue
			}
			h := &hostRule{id: int32(len(w.topology.order)), kind: apartKind, port: &port}
			w.topology.hosts[id], w.topology.order = h, append(w.topology.order, h)
			w.addPort(h)
		}
	}
}

// addPort counts a port where it is taken.
func (w *world) addPort(h *hostRule) {
	visit := func(i int) {
		for _, taken := range w.nodes[i].node.HostPorts {
			if taken.Overlaps(*h.port) {
				w.tally(i, h.id).Members++
			}
		}
	}
	if w.removal != nil {
		w.removal.eachPort(h.port.Port, visit)
		return
	}
	for i := range w.problem.Nodes {
		visit(i)
	}
}

// marks are the class's part in the packer's rules, as its wish stands.
func (w *world) marks(c *class) (marks []packing.Mark, beside []int32) {
	mark := func(id int32, owner, member bool) {
		for i := range marks {
			if marks[i].Rule == id {
				marks[i].Owner, marks[i].Member = marks[i].Owner || owner, marks[i].Member || member
				return
			}
		}
		marks = append(marks, packing.Mark{Rule: id, Owner: owner, Member: member})
	}
	for _, h := range c.set.hosts {
		mark(h.id, false, true)
	}
	for _, h := range c.own.hosts {
		if h.kind == besideKind {
			beside = append(beside, h.id)
			continue
		}
		mark(h.id, true, false)
	}
	if len(c.spec.HostPorts) == 0 {
		return marks, beside
	}
	for _, h := range w.topology.order {
		if h.port != nil && slices.ContainsFunc(c.spec.HostPorts, h.port.Overlaps) {
			mark(h.id, slices.ContainsFunc(c.spec.HostPorts, func(p planning.HostPort) bool { return p.Equals(*h.port) }), true)
		}
	}
	return marks, beside
}
