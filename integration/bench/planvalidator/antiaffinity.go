package planvalidator

import (
	corev1 "k8s.io/api/core/v1"
)

// aversion is a required anti-affinity term and the pods that have it.
type aversion struct {
	term
	owners []*pod
}

// antiAffinity looks for two pods in one domain of which one must not be with
// the other. It does not matter which came first: Kubernetes asks both.
func (w *world) antiAffinity(out *report) {
	for _, a := range w.aversions() {
		others := byDomain(w.matched(a.term), a.topology)
		for _, owner := range a.owners {
			domain, present := owner.node.labels()[a.topology]
			if !present {
				continue
			}
			for _, other := range others[domain] {
				if other != owner && (!other.bound || !owner.bound) {
					out.add(AntiAffinity, owner.key, "it must not share %s=%s with %s", a.topology, domain, other.key)
					break
				}
			}
		}
	}
}

// aversions are the different terms, in the order of the pods.
func (w *world) aversions() []*aversion {
	var all []*aversion
	seen := map[string]*aversion{}
	for _, p := range w.pods {
		for _, from := range requiredAnti(p) {
			t := affinityTerm(from, p.Pod)
			if seen[t.id()] == nil {
				seen[t.id()] = &aversion{term: t}
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

// byDomain sorts pods by the value of their node's label; pods on nodes without
// it are left out.
func byDomain(pods []*pod, topology string) map[string][]*pod {
	out := map[string][]*pod{}
	for _, p := range pods {
		if domain, present := p.node.labels()[topology]; present {
			out[domain] = append(out[domain], p)
		}
	}
	return out
}
