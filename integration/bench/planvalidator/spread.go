package planvalidator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// spreading is a DoNotSchedule constraint and the pods that share it and what
// else decides on the nodes that take part in it.
type spreading struct {
	corev1.TopologySpreadConstraint
	term
	owners []*pod
	// honour are the pod's own policies towards nodes.
	affinity, taints bool
	// keys are the labels that a node must have to take part.
	keys []string
}

// spread asks whether the pods can be bound in some order within the skew.
//
// The last pod of a constraint to enter a domain saw there all the others of the
// same constraint and all that was bound before; and no other domain had more
// than it has in the end. So their difference in the end must be within the skew.
// Pods that the constraint counts and does not bind may come later, and are let.
func (w *world) spread(out *report) {
	for _, s := range w.spreadings() {
		final := w.counted(s)
		domains := w.domains(s)
		for domain := range final {
			domains[domain] = true
		}
		entered := s.entered(out)
		for _, domain := range slices.Sorted(maps.Keys(entered)) {
			seen, least := final[domain].bound+entered[domain], s.least(domain, domains, final)
			if seen-least > int(s.MaxSkew) {
				out.add(Spread, s.owners[0].key, "%s=%s gets %d of %s while another domain has %d, and the skew may be %d", s.TopologyKey, domain, seen, s.pods, least, s.MaxSkew)
			}
		}
	}
}

// tally is how many pods of a constraint are in a domain.
type tally struct{ all, bound int }

// counted are the pods that a constraint counts, by domain.
func (w *world) counted(s *spreading) map[string]tally {
	out := map[string]tally{}
	for _, p := range w.matched(s.term) {
		if p.DeletionTimestamp != nil || !s.takesPart(p.node.meta, p.node.taints) {
			continue
		}
		t := out[p.node.labels()[s.TopologyKey]]
		t.all++
		if p.bound {
			t.bound++
		}
		out[p.node.labels()[s.TopologyKey]] = t
	}
	return out
}

// entered counts, by domain, the constraint's own pods that count for it; a pod
// that does not select itself sees only the others.
func (s *spreading) entered(out *report) map[string]int {
	entered := map[string]int{}
	for _, p := range s.owners {
		domain, present := p.node.labels()[s.TopologyKey]
		if !present {
			out.add(Spread, p.key, "%s has no label %s", p.node.name, s.TopologyKey)
			continue
		}
		if s.matches(p) {
			entered[domain]++
		} else {
			entered[domain] += 0
		}
	}
	return entered
}

// least is the smallest count of the other domains. A host can always be added,
// and so can the domains that are missing to MinDomains.
func (s *spreading) least(domain string, domains map[string]bool, final map[string]tally) int {
	if s.TopologyKey == corev1.LabelHostname || (s.MinDomains != nil && len(domains) < int(*s.MinDomains)) {
		return 0
	}
	least, found := 0, false
	for other := range domains {
		if count := final[other].all; other != domain && (!found || count < least) {
			least, found = count, true
		}
	}
	if !found {
		return final[domain].all
	}
	return least
}

// takesPart reports whether a node counts.
func (s *spreading) takesPart(meta *corev1.Node, taints []corev1.Taint) bool {
	owner := s.owners[0]
	if s.affinity && !owner.selects(meta) {
		return false
	}
	if _, blocked := blocking(taints, owner.Spec.Tolerations); s.taints && blocked {
		return false
	}
	return !slices.ContainsFunc(s.keys, func(name string) bool {
		_, present := meta.Labels[name]
		return !present
	})
}

// spreadings are the different constraints, in the order of the pods.
func (w *world) spreadings() []*spreading {
	var all []*spreading
	seen := map[string]*spreading{}
	for _, p := range w.pods {
		if p.bound {
			continue
		}
		var keys []string
		for _, c := range p.Spec.TopologySpreadConstraints {
			if c.WhenUnsatisfiable == corev1.DoNotSchedule {
				keys = append(keys, c.TopologyKey)
			}
		}
		for _, c := range p.Spec.TopologySpreadConstraints {
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				continue
			}
			s := newSpreading(c, p, keys)
			id := s.id()
			if seen[id] == nil {
				seen[id] = s
				all = append(all, s)
			}
			seen[id].owners = append(seen[id].owners, p)
		}
	}
	for _, s := range all {
		s.owners = s.owners[1:] // the first was there to make the id
	}
	return all
}

func newSpreading(c corev1.TopologySpreadConstraint, p *pod, keys []string) *spreading {
	return &spreading{
		TopologySpreadConstraint: c,
		term:                     term{topology: c.TopologyKey, namespaces: []string{p.Namespace}, pods: selector(c.LabelSelector, p.Pod, c.MatchLabelKeys, nil)},
		owners:                   []*pod{p},
		affinity:                 c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
		taints:                   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		keys:                     keys,
	}
}

// id tells constraints apart that count differently.
func (s *spreading) id() string {
	least := int32(0)
	if s.MinDomains != nil {
		least = *s.MinDomains
	}
	return fmt.Sprintf("%s|%d|%d|%q|%s", s.term.id(), s.MaxSkew, least, s.keys, s.view())
}

// view is what of the owner decides on the nodes that take part.
func (s *spreading) view() string {
	var parts []any
	if p := s.owners[0]; s.affinity && p.choosy() {
		parts = append(parts, p.Spec.NodeSelector)
		if a := p.Spec.Affinity; a != nil {
			parts = append(parts, a.NodeAffinity)
		}
	}
	if s.taints {
		parts = append(parts, s.owners[0].Spec.Tolerations)
	}
	text, _ := json.Marshal(parts) //nolint:errchkjson // Kubernetes' own types
	return fmt.Sprintf("%t%t%s", s.affinity, s.taints, text)
}
