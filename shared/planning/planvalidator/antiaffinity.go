package planvalidator

import (
	corev1 "k8s.io/api/core/v1"
)

// antiAffinityRule is a required anti-affinity term and the pods that have it.
type antiAffinityRule struct {
	podTerm
	owners []*pod
}

// checkAntiAffinity checks that no two pods in one domain exclude each other. Their order does not matter, because
// Kubernetes checks both directions.
func (w *finalCluster) checkAntiAffinity(out *report) {
	for _, a := range w.antiAffinityRules() {
		others := groupByDomain(w.matchingPods(a.podTerm), a.topology)
		for _, owner := range a.owners {
			domain, present := owner.node.labels()[a.topology]
			if !present {
				continue
			}
			for _, other := range others[domain] {
				if other != owner && (!other.bound || !owner.bound) {
					out.add(AntiAffinity, owner.key, "anti-affinity excludes sharing %s=%s with %s", a.topology, domain, other.key)
					break
				}
			}
		}
	}
}

// antiAffinityRules returns the different terms in the order of the pods.
func (w *finalCluster) antiAffinityRules() []*antiAffinityRule {
	var all []*antiAffinityRule
	seen := map[string]*antiAffinityRule{}
	for _, p := range w.pods {
		for _, from := range requiredAnti(p) {
			t := w.scenario.newPodTerm(from, p.Pod)
			if seen[t.id()] == nil {
				seen[t.id()] = &antiAffinityRule{podTerm: t}
				all = append(all, seen[t.id()])
			}
			seen[t.id()].owners = append(seen[t.id()].owners, p)
		}
	}
	return all
}

func requiredAnti(p *pod) []corev1.PodAffinityTerm {
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// groupByDomain groups pods by the value of their node's label, without nodes that lack it.
func groupByDomain(pods []*pod, topology string) map[string][]*pod {
	out := map[string][]*pod{}
	for _, p := range pods {
		if domain, present := p.node.labels()[topology]; present {
			out[domain] = append(out[domain], p)
		}
	}
	return out
}
