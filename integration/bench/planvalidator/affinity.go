package planvalidator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// attraction is the required affinity that a number of pods have.
type attraction struct {
	terms   []term
	members []*pod
	// matched are the pods that all of the terms select: Kubernetes lets no
	// others count.
	matched []*pod
}

// affinity asks whether the pods can be bound in some order so that each finds
// its company. A pod may come first of its kind, where it selects itself and
// nothing that it selects is there yet; every other needs, for each term, a pod
// in its domain that came before it.
//
// Pods that ask for no company may be bound before all others, whatever the plan: a
// first comer must be right even then. Of the others, the order tried is the kindest:
// whatever has company, then one first comer after the other, until nothing moves.
func (w *world) affinity(out *report) {
	all := w.attractions()
	came, first := map[*pod]bool{}, map[*pod]bool{}
	for _, p := range w.pods {
		came[p] = p.bound || len(requiredAffinity(p)) == 0
		first[p] = came[p]
	}
	follow(all, came)
	for _, a := range all {
		for _, p := range a.members {
			if !came[p] && a.mayComeFirst(p, first) {
				came[p], first[p] = true, true
				follow(all, came)
			}
		}
	}
	for _, a := range all {
		for _, p := range a.members {
			if !came[p] {
				out.add(Affinity, p.key, "on %s it has no company of %s by %s", p.node.name, a.terms[0].pods, a.terms[0].topology)
			}
		}
	}
}

// follow lets all pods come that have company, until nothing moves.
func follow(all []*attraction, came map[*pod]bool) {
	for moved := true; moved; {
		moved = false
		for _, a := range all {
			company := a.company(came)
			for _, p := range a.members {
				if !came[p] && a.accompanied(p, company) {
					came[p], moved = true, true
					a.join(p, company)
				}
			}
		}
	}
}

// company is, for each term, the domains in which a matched pod came.
func (a *attraction) company(came map[*pod]bool) []map[string]bool {
	company := make([]map[string]bool, len(a.terms))
	for i := range company {
		company[i] = map[string]bool{}
	}
	for _, p := range a.matched {
		if came[p] {
			a.join(p, company)
		}
	}
	return company
}

// join adds a pod to the company of others, if the terms select it.
func (a *attraction) join(p *pod, company []map[string]bool) {
	if slices.ContainsFunc(a.terms, func(t term) bool { return !t.matches(p) }) {
		return
	}
	for i, t := range a.terms {
		if domain, present := p.node.labels()[t.topology]; present {
			company[i][domain] = true
		}
	}
}

func (a *attraction) accompanied(p *pod, company []map[string]bool) bool {
	for i, t := range a.terms {
		domain, present := p.node.labels()[t.topology]
		if !present || !company[i][domain] {
			return false
		}
	}
	return true
}

// mayComeFirst reports whether a pod may open a domain: none of those that came first
// is what it looks for.
func (a *attraction) mayComeFirst(p *pod, first map[*pod]bool) bool {
	for _, t := range a.terms {
		if _, present := p.node.labels()[t.topology]; !present || !t.matches(p) {
			return false
		}
	}
	return !slices.ContainsFunc(a.matched, func(q *pod) bool { return first[q] && a.visible(q) })
}

// visible pods are on a node that has one of the terms' labels.
func (a *attraction) visible(q *pod) bool {
	return slices.ContainsFunc(a.terms, func(t term) bool {
		_, present := q.node.labels()[t.topology]
		return present
	})
}

// attractions are the different sets of terms, in the order of the pods.
func (w *world) attractions() []*attraction {
	var all []*attraction
	seen := map[string]*attraction{}
	for _, p := range w.pods {
		required := requiredAffinity(p)
		if len(required) == 0 || p.bound {
			continue
		}
		var terms []term
		id := ""
		for _, from := range required {
			t := affinityTerm(from, p.Pod)
			terms, id = append(terms, t), id+t.id()+"&"
		}
		if seen[id] == nil {
			seen[id] = &attraction{terms: terms, matched: w.matched(terms...)}
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
