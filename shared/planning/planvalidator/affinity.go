package planvalidator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// affinityRule is a required affinity and the pods that have it.
type affinityRule struct {
	terms   []podTerm
	members []*pod
	// matched are the pods that all terms select: Kubernetes counts no others.
	matched []*pod
}

// checkAffinity checks that the pods can be bound in some order in which each term of each pod finds a matching
// pod in its domain. A pod may be first if it selects itself and no pod that it selects is bound. Pods without
// required affinity are bound first, but after pods of a higher priority, as in kube-scheduler's queue. The others
// are bound in the most favourable order: all satisfied pods, then one first pod, until no pod is left.
func (w *finalCluster) checkAffinity(out *report) {
	all := w.affinityRules()
	came, first := map[*pod]bool{}, map[*pod]bool{}
	for _, p := range w.pods {
		came[p] = p.bound || len(requiredAffinity(p)) == 0
		first[p] = came[p]
	}
	placeFollowers(all, came)
	for _, a := range all {
		for _, p := range a.members {
			if !came[p] && a.canBeFirst(p, first) {
				came[p], first[p] = true, true
				placeFollowers(all, came)
			}
		}
	}
	for _, a := range all {
		for _, p := range a.members {
			if !came[p] {
				out.add(Affinity, p.key, "on %s no pod that matches %s is in its domain of %s", p.node.name, a.terms[0].pods, a.terms[0].topology)
			}
		}
	}
}

// placeFollowers binds all pods whose affinity is satisfied, until no pod can be added.
func placeFollowers(all []*affinityRule, came map[*pod]bool) {
	for moved := true; moved; {
		moved = false
		for _, a := range all {
			company := a.occupiedDomains(came)
			for _, p := range a.members {
				if !came[p] && a.isSatisfied(p, company) {
					came[p], moved = true, true
					a.addPod(p, company)
				}
			}
		}
	}
}

// occupiedDomains returns, for each term, the domains with a matching pod.
func (a *affinityRule) occupiedDomains(came map[*pod]bool) []map[string]bool {
	company := make([]map[string]bool, len(a.terms))
	for i := range company {
		company[i] = map[string]bool{}
	}
	for _, p := range a.matched {
		if came[p] {
			a.addPod(p, company)
		}
	}
	return company
}

// addPod adds the domains of a pod if the terms select it.
func (a *affinityRule) addPod(p *pod, company []map[string]bool) {
	if slices.ContainsFunc(a.terms, func(t podTerm) bool { return !t.matchesPod(p) }) {
		return
	}
	for i, t := range a.terms {
		if domain, present := p.node.labels()[t.topology]; present {
			company[i][domain] = true
		}
	}
}

func (a *affinityRule) isSatisfied(p *pod, company []map[string]bool) bool {
	for i, t := range a.terms {
		domain, present := p.node.labels()[t.topology]
		if !present || !company[i][domain] {
			return false
		}
	}
	return true
}

// canBeFirst reports whether a pod may open a domain: it selects none of the pods that are already first, except pending ones of a lower
// priority.
func (a *affinityRule) canBeFirst(p *pod, first map[*pod]bool) bool {
	for _, t := range a.terms {
		if _, present := p.node.labels()[t.topology]; !present || !t.matchesPod(p) {
			return false
		}
	}
	return !slices.ContainsFunc(a.matched, func(q *pod) bool {
		return first[q] && a.isCounted(q) && (q.bound || q.priority() >= p.priority())
	})
}

// isCounted reports whether the pod's node has the label of a term.
func (a *affinityRule) isCounted(q *pod) bool {
	return slices.ContainsFunc(a.terms, func(t podTerm) bool {
		_, present := q.node.labels()[t.topology]
		return present
	})
}

// affinityRules returns the different sets of terms in the order of the pods.
func (w *finalCluster) affinityRules() []*affinityRule {
	var all []*affinityRule
	seen := map[string]*affinityRule{}
	for _, p := range w.pods {
		required := requiredAffinity(p)
		if len(required) == 0 || p.bound {
			continue
		}
		var terms []podTerm
		id := ""
		for _, from := range required {
			t := w.scenario.newPodTerm(from, p.Pod)
			terms, id = append(terms, t), id+t.id()+"&"
		}
		if seen[id] == nil {
			seen[id] = &affinityRule{terms: terms, matched: w.matchingPods(terms...)}
			all = append(all, seen[id])
		}
		seen[id].members = append(seen[id].members, p)
	}
	return all
}

func requiredAffinity(p *pod) []corev1.PodAffinityTerm {
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}
