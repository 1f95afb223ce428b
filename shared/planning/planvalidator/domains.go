package planvalidator

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// spreadDomains returns the label values of counted nodes: existing, planned, and launchable ones.
func (w *finalCluster) spreadDomains(s *spreadRule) map[string]bool {
	out := map[string]bool{}
	for _, n := range w.nodes {
		if !slices.Contains(n.openLabels, s.TopologyKey) && s.isCountedNode(n.meta, n.taints) {
			out[n.labels()[s.TopologyKey]] = true
		}
	}
	if s.TopologyKey == corev1.LabelHostname {
		return out
	}
	for domain := range w.launchableDomains(s) {
		out[domain] = true
	}
	return out
}

// launchableDomains returns the domains of nodes that could be launched.
func (w *finalCluster) launchableDomains(s *spreadRule) map[string]bool {
	id := fmt.Sprintf("%s|%q|%s", s.TopologyKey, s.keys, s.nodeViewKey())
	if out, known := w.launchables[id]; known {
		return out
	}
	if w.launchables == nil {
		w.launchables = map[string]map[string]bool{}
	}
	out := map[string]bool{}
	w.launchables[id] = out
	limits, left := w.poolLimits()
	prices := map[*NodePool]float64{}
	for i := range w.scenario.NodePools {
		prices[&w.scenario.NodePools[i]] = w.remainingPrice(&w.scenario.NodePools[i])
	}
	for i := range w.offered {
		p := &w.offered[i]
		if !p.offering.Available || !p.fitsLimits(limits, left) || p.offering.Price > prices[p.pool]+priceTolerance {
			continue
		}
		for _, set := range p.labelCombinations() {
			set = labels.Merge(set, labels.Set{corev1.LabelHostname: "a node to come"})
			meta := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: set}}
			if s.isCountedNode(meta, p.pool.Spec.Template.Spec.Taints) {
				out[set[s.TopologyKey]] = true
			}
		}
	}
	return out
}

// fitsLimits reports whether what existing nodes leave of its NodePool's limits is enough for one node.
func (p *launchOption) fitsLimits(limits []poolLimit, left []float64) bool {
	for i, limit := range limits {
		if limit.pool == p.pool && left[i] < toVector(withNode(p.machine.Capacity), []corev1.ResourceName{limit.name}, roundDown)[0] {
			return false
		}
	}
	return true
}

// labelCombinations returns the label sets for the values that the NodePool lists.
func (p *launchOption) labelCombinations() []labels.Set {
	sets := []labels.Set{p.fixed}
	for _, name := range p.open {
		var next []labels.Set
		for _, r := range p.pool.Spec.Template.Spec.Requirements {
			if stableLabel(r.Key) != name || r.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for _, set := range sets {
				for _, value := range r.Values {
					if one := labels.Merge(set, labels.Set{name: value}); p.allowsLabel(name, one) {
						next = append(next, withAliases(one))
					}
				}
			}
		}
		if len(next) > 0 {
			sets = next
		}
	}
	return sets
}
