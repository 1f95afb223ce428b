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

// topologyTerm is one spread constraint or pod (anti-)affinity term of a pod.
type topologyTerm struct {
	kind      ruleKind
	key       string
	selection selection
	skew, min int
	hard      bool
	spread    *corev1.TopologySpreadConstraint
}

// readTerms returns the terms of the class under its current preferences.
func (w *state) readTerms(c *podClass) (out []topologyTerm, problem string) {
	spread := func(s *corev1.TopologySpreadConstraint, hard bool) {
		chosen, err := spreadSelection(s, c.spec)
		if err != nil {
			problem = fmt.Sprintf("its topology spread over %s: %v", s.TopologyKey, err)
		}
		one := topologyTerm{kind: spreadKind, key: s.TopologyKey, selection: chosen, skew: int(s.MaxSkew), hard: hard, spread: s}
		if s.MinDomains != nil {
			one.min = int(*s.MinDomains)
		}
		out = append(out, one)
	}
	pods := func(kind ruleKind, name string, hard bool, list []corev1.PodAffinityTerm) {
		for i := range list {
			chosen, err := w.termSelection(&list[i], c.spec)
			if err != nil {
				problem = fmt.Sprintf("its %s over %s: %v", name, list[i].TopologyKey, err)
			}
			out = append(out, topologyTerm{kind: kind, key: list[i].TopologyKey, selection: chosen, hard: hard})
		}
	}
	for i := range c.spec.Spread {
		if c.spec.Spread[i].WhenUnsatisfiable == corev1.DoNotSchedule {
			spread(&c.spec.Spread[i], true)
		}
	}
	for i := range c.preferences.softSpread {
		spread(&c.preferences.softSpread[i], false)
	}
	if a := c.spec.Affinity; a != nil && a.PodAffinity != nil {
		first := len(out)
		pods(affinityKind, "pod affinity", true, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		joinSelections(out[first:])
	}
	pods(affinityKind, "preferred pod affinity", false, c.preferences.affinity)
	pods(antiAffinityKind, "pod anti-affinity", true, requiredAntiAffinity(c.spec.Affinity))
	pods(antiAffinityKind, "preferred pod anti-affinity", false, c.preferences.antiAffinity)
	return out, problem
}

// joinSelections makes each term of a required affinity select only the pods that all of them select
// (Kubernetes: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, updateWithAffinityTerms).
func joinSelections(terms []topologyTerm) {
	if len(terms) < 2 {
		return
	}
	joined := terms[0].selection
	for _, t := range terms[1:] {
		joined.also = append(joined.also, t.selection)
	}
	for i := range terms {
		terms[i].selection = joined
	}
}

func requiredAntiAffinity(affinity *corev1.Affinity) []corev1.PodAffinityTerm {
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	return affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// bindRules sets the rules of the class. A spread that counts no pods only requires that nodes have
// its label. An anti-affinity that counts no pods has no effect; domains for it would only separate
// pods for no reason.
func (w *state) bindRules(c *podClass) {
	c.rules = ownTerms{}
	if c.spec.Affinity == nil && len(c.spec.Spread) == 0 {
		return
	}
	terms, problem := w.readTerms(c)
	if problem != "" {
		c.problem = problem
		return
	}
	for _, t := range terms {
		if isHostname(t.key) {
			c.rules.hosts = append(c.rules.hosts, w.findHostRule(t))
			continue
		}
		g := w.findGroup(t, c)
		switch {
		case g.kind == affinityKind || !g.isIdle():
			c.rules.groups = append(c.rules.groups, g)
		case g.kind == spreadKind:
			c.feasible = w.narrowToLabel(c.feasible, g.key)
		}
	}
}

// findGroup returns the group of a term, and creates it if it is new.
func (w *state) findGroup(t topologyTerm, c *podClass) *group {
	t.key = karpenter.NormalizeLabel(t.key)
	id := fmt.Sprintf("%d\x00%s\x00%s\x00%d\x00%d\x00%t", t.kind, t.key, t.selection.key(), t.skew, t.min, t.hard)
	where := w.findRegion(t.spread, c)
	if where != nil {
		id += "\x00" + where.key
	}
	everywhere := t.spread != nil && t.spread.NodeAffinityPolicy != nil && *t.spread.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	tolerated := t.spread != nil && t.spread.NodeTaintsPolicy != nil && *t.spread.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	id += fmt.Sprintf("\x00%t%t", everywhere, tolerated)
	var labels []string
	if t.spread != nil {
		labels = listSpreadLabels(c.spec)
	}
	if g, ok := w.topology.groups[id]; ok {
		return g
	}
	g := &group{
		id: len(w.topology.groups), kind: t.kind, key: t.key, skew: t.skew, min: t.min, hard: t.hard, region: where, ignoresNodeAffinity: everywhere, honorsTaints: tolerated,
		labels: labels, members: map[*labelSet]bool{}, counts: map[string]int{}, owners: map[string]int{}, uncertain: map[string]int{},
	}
	w.topology.groups[id] = g
	for _, set := range w.topology.sets.selectSets(t.selection) {
		g.members[set] = true
		set.counted = append(set.counted, g)
		for _, b := range set.bound {
			if domain, ok := w.nodes[b.node].domainValue(g.key); ok && (where == nil || where.nodes.Has(b.node)) {
				g.counts[domain] += b.count
			}
		}
	}
	if w.removal != nil {
		w.removal.countGroup(g, id, t, c)
	}
	return g
}

// hasMember reports whether the group selects pods to place for which the condition is true.
func (g *group) hasMember(condition func(*podClass) bool) bool {
	for set := range g.members {
		if slices.ContainsFunc(set.classes, condition) {
			return true
		}
	}
	return false
}

// isIdle reports whether the group counts no pods and no pending pod can change that.
func (g *group) isIdle() bool {
	for set := range g.members {
		if set.pending {
			return false
		}
	}
	return g.countMembers() == 0
}

// listSpreadLabels returns the custom labels of all required spread constraints of the pod. A node
// counts for the pod's spread only if it has all of them.
func listSpreadLabels(spec *planning.PodSpec) []string {
	var out []string
	for i := range spec.Spread {
		key := karpenter.NormalizeLabel(spec.Spread[i].TopologyKey)
		if spec.Spread[i].WhenUnsatisfiable == corev1.DoNotSchedule && key != corev1.LabelHostname && !karpenter.IsWellKnownLabel(key) {
			out = append(out, key)
		}
	}
	return planning.SortUnique(out)
}

// requireLabels adds the requirement that the labels exist.
func requireLabels(want planning.Requirements, labels []string) planning.Requirements {
	for _, key := range labels {
		want = want.WithRequirement(key, planning.NewValues(corev1.NodeSelectorOpExists))
	}
	return want
}

// findHostRule returns the rule of a term over host names, and creates it if it is new.
func (w *state) findHostRule(t topologyTerm) *hostRule {
	id := fmt.Sprintf("%d\x00%s\x00%d\x00%t", t.kind, t.selection.key(), t.skew, t.hard)
	if h, ok := w.topology.hosts[id]; ok {
		return h
	}
	h := &hostRule{id: int32(len(w.topology.order)), kind: t.kind, skew: t.skew, soft: !t.hard}
	w.topology.hosts[id] = h
	w.topology.order = append(w.topology.order, h)
	for _, set := range w.topology.sets.selectSets(t.selection) {
		set.hosts = append(set.hosts, h)
		for _, b := range set.bound {
			w.findRuleCount(b.node, h.id).Members += int32(b.count)
		}
	}
	if w.removal != nil {
		w.removal.countHostRule(w, h.id, t.selection)
	}
	return h
}

// packerRule returns the rule as a packing.Rule. A new node starts empty, so the global minimum of a
// spread over host names is 0.
func (h *hostRule) packerRule() packing.Rule {
	switch h.kind {
	case antiAffinityKind:
		return packing.Rule{WithMember: 1, WithOther: 0, Soft: h.soft}
	case spreadKind:
		return packing.Rule{WithMember: int32(h.skew), WithOther: int32(h.skew), Soft: h.soft}
	default:
		return packing.Rule{WithMember: math.MaxInt32, WithOther: math.MaxInt32, Soft: true}
	}
}

func (w *state) findRuleCount(node int, rule int32) *packing.RuleCount {
	n := &w.problem.Nodes[node]
	for i := range n.RuleCounts {
		if n.RuleCounts[i].Rule == rule {
			return &n.RuleCounts[i]
		}
	}
	if w.removal != nil && len(n.RuleCounts) == 0 {
		w.removal.baseline.talliedNodes = append(w.removal.baseline.talliedNodes, node)
	}
	n.RuleCounts = append(n.RuleCounts, packing.RuleCount{Rule: rule})
	return &n.RuleCounts[len(n.RuleCounts)-1]
}

// addHostPorts adds a rule for each host port that pending pods request.
func (w *state) addHostPorts() {
	for _, c := range w.classes {
		for _, port := range c.spec.HostPorts {
			id := fmt.Sprintf("port\x00%s\x00%d\x00%s", port.IP, port.Port, port.EffectiveProtocol())
			if w.topology.hosts[id] != nil {
				continue
			}
			h := &hostRule{id: int32(len(w.topology.order)), kind: antiAffinityKind, port: &port}
			w.topology.hosts[id], w.topology.order = h, append(w.topology.order, h)
			w.countHostPort(h)
		}
	}
}

// countHostPort counts the nodes on which the host port is in use.
func (w *state) countHostPort(h *hostRule) {
	visit := func(i int) {
		for _, taken := range w.nodes[i].node.HostPorts {
			if taken.Overlaps(*h.port) {
				w.findRuleCount(i, h.id).Members++
			}
		}
	}
	if w.removal != nil {
		w.removal.visitPortNodes(h.port.Port, visit)
		return
	}
	for i := range w.problem.Nodes {
		visit(i)
	}
}

// listRoles returns the packer's marks of the class under its current preferences, and the ids of its
// affinity rules over host names.
func (w *state) listRoles(c *podClass) (roles []packing.RuleRole, affinityRules []int32) {
	for _, h := range c.set.hosts {
		roles = append(roles, packing.RuleRole{Rule: h.id, Member: true})
	}
	for _, h := range c.rules.hosts {
		if h.kind == affinityKind {
			affinityRules = append(affinityRules, h.id)
			continue
		}
		if i := slices.IndexFunc(roles, func(r packing.RuleRole) bool { return r.Rule == h.id }); i >= 0 {
			roles[i].Owner = true
			continue
		}
		roles = append(roles, packing.RuleRole{Rule: h.id, Owner: true})
	}
	if len(c.spec.HostPorts) == 0 {
		return roles, affinityRules
	}
	for _, h := range w.topology.order {
		if h.port != nil && slices.ContainsFunc(c.spec.HostPorts, h.port.Overlaps) {
			owner := slices.ContainsFunc(c.spec.HostPorts, func(p planning.HostPort) bool { return p.Equals(*h.port) })
			roles = append(roles, packing.RuleRole{Rule: h.id, Owner: owner, Member: true})
		}
	}
	return roles, affinityRules
}
