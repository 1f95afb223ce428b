package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// repellingPods are equal running pods on a node with required anti-affinities, of which one may select a pending pod.
type repellingPods struct {
	node, count int
	spec        *planning.PodSpec
}

// findRepellingPods returns the running pods with a required anti-affinity that may select a pending pod.
func (w *state) findRepellingPods() []repellingPods {
	var out []repellingPods
	pending := w.listPendingLabels()
	for i := range w.problem.Nodes {
		for _, bound := range w.nodes[i].antiAffine {
			if !pending.mayBeRepelled(&bound.Spec) {
				continue
			}
			if n := planning.CountNotTerminating(bound.Pods); n > 0 {
				out = append(out, repellingPods{i, n, &bound.Spec})
			}
		}
	}
	return out
}

// addBoundPods adds the running pods that a rule may select to their label sets: rules of the pending pods, and
// anti-affinities of the repelling pods. Most pending pods have no such rules, and a large cluster has hundreds of thousands of
// running pods.
func (w *state) addBoundPods(repelling []repellingPods) {
	selected := w.listSelectedNamespaces(repelling)
	isWanted := func(bound *planning.PodSpec) bool { return selected.all || selected.names[bound.Namespace] }
	if !selected.all && len(selected.names) == 0 {
		return
	}
	w.visitBoundPods(isWanted, func(node, count int, bound *planning.PodSpec) {
		set := w.topology.sets.findSet(bound.Namespace, bound.Labels)
		set.bound = append(set.bound, boundPods{node, count})
	})
}

// selectedNamespaces are the namespaces in which rules select pods.
type selectedNamespaces struct {
	all   bool
	names map[string]bool
}

// listSelectedNamespaces returns the namespaces of the rules that addBoundPods names.
func (w *state) listSelectedNamespaces(repelling []repellingPods) selectedNamespaces {
	out := selectedNamespaces{names: map[string]bool{}}
	for _, c := range w.classes {
		if len(c.spec.Spread) > 0 {
			out.names[c.spec.Namespace] = true
		}
		for _, t := range listAffinityTerms(c.spec.Affinity) {
			out.add(&t, c.spec.Namespace)
		}
	}
	for _, bound := range repelling {
		for _, t := range requiredAntiAffinity(bound.spec.Affinity) {
			out.add(&t, bound.spec.Namespace)
		}
	}
	return out
}

// add adds the namespaces of a term of a pod in the namespace.
func (s *selectedNamespaces) add(t *corev1.PodAffinityTerm, namespace string) {
	s.all = s.all || t.NamespaceSelector != nil
	for _, name := range t.Namespaces {
		s.names[name] = true
	}
	if len(t.Namespaces) == 0 {
		s.names[namespace] = true
	}
}

// listAffinityTerms returns the required and preferred terms of pod affinity and anti-affinity.
func listAffinityTerms(a *corev1.Affinity) []corev1.PodAffinityTerm {
	if a == nil || a.PodAffinity == nil && a.PodAntiAffinity == nil {
		return nil
	}
	var out []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		out = append(out, required...)
		for i := range preferred {
			out = append(out, preferred[i].PodAffinityTerm)
		}
	}
	if a.PodAffinity != nil {
		add(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		add(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// pendingLabels are the namespaces and labels of the pending pods.
type pendingLabels struct {
	namespaces map[string]bool
	labels     map[[2]string]bool
}

func (w *state) listPendingLabels() pendingLabels {
	out := pendingLabels{map[string]bool{}, map[[2]string]bool{}}
	for _, c := range w.classes {
		out.namespaces[c.spec.Namespace] = true
		for name, value := range c.spec.Labels {
			out.labels[[2]string{name, value}] = true
		}
	}
	return out
}

// mayBeRepelled returns false if no required anti-affinity of a running pod selects a pending pod.
func (p pendingLabels) mayBeRepelled(bound *planning.PodSpec) bool {
	terms := requiredAntiAffinity(bound.Affinity)
	for i := range terms {
		if p.maySelect(&terms[i], bound.Namespace) {
			return true
		}
	}
	return false
}

// maySelect returns false if a term of a pod in the namespace selects no pending pod. It compares only names and labels.
func (p pendingLabels) maySelect(t *corev1.PodAffinityTerm, namespace string) bool {
	if t.LabelSelector == nil || t.NamespaceSelector == nil && len(t.Namespaces) == 0 && !p.namespaces[namespace] {
		return false
	}
	for name, value := range t.LabelSelector.MatchLabels {
		if !p.labels[[2]string{name, value}] {
			return false
		}
	}
	return true
}

// visitBoundPods visits the running pods on nodes that stay, without terminating pods, if their specs are wanted.
func (w *state) visitBoundPods(isWanted func(*planning.PodSpec) bool, visit func(node, count int, spec *planning.PodSpec)) {
	for i := range w.problem.Nodes {
		node := w.nodes[i].node
		for _, list := range [][]planning.PodClass{node.Pods, node.DaemonPods} {
			for j := range list {
				if !isWanted(&list[j].Spec) {
					continue
				}
				if n := planning.CountNotTerminating(list[j].Pods); n > 0 {
					visit(i, n, &list[j].Spec)
				}
			}
		}
	}
}

// addBoundAntiAffinity adds the required anti-affinities of the repelling pods, which keep pending pods away. It skips terms that
// select no pending pod.
func (w *state) addBoundAntiAffinity(repelling []repellingPods) {
	for _, bound := range repelling {
		for _, t := range requiredAntiAffinity(bound.spec.Affinity) {
			chosen, err := w.termSelection(&t, bound.spec)
			if err != nil {
				continue // Kubernetes ignores a term that it cannot read.
			}
			if !slices.ContainsFunc(w.topology.sets.selectSets(chosen), func(s *labelSet) bool { return s.pending }) {
				continue
			}
			one := topologyTerm{kind: antiAffinityKind, key: t.TopologyKey, selection: chosen, hard: true}
			if !isHostname(t.TopologyKey) {
				g := w.findGroup(one, nil)
				if domain, ok := w.nodes[bound.node].domainValue(g.key); ok {
					g.owners[domain] += bound.count
				}
				continue
			}
			counts := w.findRuleCount(bound.node, w.findHostRule(one).id)
			if chosen.matchesSet(w.topology.sets.findSet(bound.spec.Namespace, bound.spec.Labels)) {
				counts.OwnersInside += int32(bound.count)
			} else {
				counts.OwnersOutside += int32(bound.count)
			}
		}
	}
}
