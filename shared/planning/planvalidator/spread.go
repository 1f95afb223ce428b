package planvalidator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// spreadRule is a DoNotSchedule topology spread constraint with the pods that share it.
type spreadRule struct {
	corev1.TopologySpreadConstraint
	podTerm
	owners []*pod
	// honour are the pod's node inclusion policies.
	affinity, taints bool
	// keys are the labels that a counted node must have.
	keys []string
}

// checkSpread checks that the pods can be bound in some order within the skew. The last pod that enters a domain
// sees all other pods of the constraint in it, and no other domain ever has more pods than at the end. So the
// final difference must be within the skew. Pods that the constraint counts but that do not have it may be bound
// later and are ignored.
func (w *finalCluster) checkSpread(out *report) {
	for _, s := range w.spreadRules() {
		final := w.countPods(s)
		domains := w.spreadDomains(s)
		for domain := range final {
			domains[domain] = true
		}
		entered := s.newPodsByDomain(out)
		for _, domain := range slices.Sorted(maps.Keys(entered)) {
			seen, least := final[domain].bound+entered[domain], s.minimumOther(domain, domains, final)
			if seen-least > int(s.MaxSkew) {
				out.add(Spread, s.owners[0].key, "%s=%s gets %d of %s while another domain has %d, and the skew may be %d", s.TopologyKey, domain, seen, s.pods, least, s.MaxSkew)
			}
		}
	}
}

// podCount is how many pods of a constraint are in a domain.
type podCount struct{ all, bound int }

// countPods returns the pods that a constraint counts, by domain.
func (w *finalCluster) countPods(s *spreadRule) map[string]podCount {
	out := map[string]podCount{}
	for _, p := range w.matchingPods(s.podTerm) {
		if p.DeletionTimestamp != nil || !s.isCountedNode(p.node.meta, p.node.taints) {
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

// newPodsByDomain counts the constraint's own pods by domain; a pod that does not select itself counts only the
// others.
func (s *spreadRule) newPodsByDomain(out *report) map[string]int {
	entered := map[string]int{}
	for _, p := range s.owners {
		domain, present := p.node.labels()[s.TopologyKey]
		if !present {
			out.add(Spread, p.key, "%s has no label %s", p.node.name, s.TopologyKey)
			continue
		}
		if s.matchesPod(p) {
			entered[domain]++
		} else {
			entered[domain] += 0
		}
	}
	return entered
}

// minimumOther returns the smallest count of the other domains. A new host is always possible, and so are the
// domains that minDomains requires.
func (s *spreadRule) minimumOther(domain string, domains map[string]bool, final map[string]podCount) int {
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

// isCountedNode reports whether the constraint counts the node.
func (s *spreadRule) isCountedNode(meta *corev1.Node, taints []corev1.Taint) bool {
	owner := s.owners[0]
	if s.affinity && !owner.canRunOn(meta) {
		return false
	}
	if _, blocked := untoleratedTaint(taints, owner.Spec.Tolerations); s.taints && blocked {
		return false
	}
	return !slices.ContainsFunc(s.keys, func(name string) bool {
		_, present := meta.Labels[name]
		return !present
	})
}

// spreadRules returns the different constraints in the order of the pods.
func (w *finalCluster) spreadRules() []*spreadRule {
	var all []*spreadRule
	seen := map[string]*spreadRule{}
	for _, p := range w.pods {
		if p.bound {
			continue
		}
		keys := p.spreadKeys()
		for _, c := range p.Spec.TopologySpreadConstraints {
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				continue
			}
			s := newSpreadRule(c, p, keys)
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

// spreadKeys returns the labels of the pod's constraints.
func (p *pod) spreadKeys() []string {
	var keys []string
	for _, c := range p.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			keys = append(keys, c.TopologyKey)
		}
	}
	return keys
}

func newSpreadRule(c corev1.TopologySpreadConstraint, p *pod, keys []string) *spreadRule {
	return &spreadRule{
		TopologySpreadConstraint: c,
		podTerm:                  podTerm{topology: c.TopologyKey, namespaces: []string{p.Namespace}, pods: podSelector(c.LabelSelector, p.Pod, c.MatchLabelKeys, nil)},
		owners:                   []*pod{p},
		affinity:                 c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
		taints:                   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		keys:                     keys,
	}
}

// id is equal for constraints with equal limits that count the same pods and nodes.
func (s *spreadRule) id() string {
	least := int32(0)
	if s.MinDomains != nil {
		least = *s.MinDomains
	}
	return fmt.Sprintf("%s|%d|%d|%q|%s", s.podTerm.id(), s.MaxSkew, least, s.keys, s.nodeViewKey())
}

// nodeViewKey is equal for owners that count the same nodes.
func (s *spreadRule) nodeViewKey() string {
	var parts []any
	if p := s.owners[0]; s.affinity && p.hasNodeConstraints() {
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
