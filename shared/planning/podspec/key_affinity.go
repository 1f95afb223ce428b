package podspec

import corev1 "k8s.io/api/core/v1"

func (k *key) affinity(a *corev1.Affinity) {
	if !k.present(a != nil) {
		return
	}
	k.nodeAffinity(a.NodeAffinity)
	if together := a.PodAffinity; k.present(together != nil) {
		k.podTerms(together.RequiredDuringSchedulingIgnoredDuringExecution)
		k.weightedTerms(together.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if apart := a.PodAntiAffinity; k.present(apart != nil) {
		k.podTerms(apart.RequiredDuringSchedulingIgnoredDuringExecution)
		k.weightedTerms(apart.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (k *key) nodeAffinity(a *corev1.NodeAffinity) {
	if !k.present(a != nil) {
		return
	}
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; k.present(required != nil) {
		k.nodeTerms(required.NodeSelectorTerms)
	}
	preferred := a.PreferredDuringSchedulingIgnoredDuringExecution
	k.length(len(preferred))
	for i := range preferred {
		k.number(int64(preferred[i].Weight))
		k.nodeTerm(&preferred[i].Preference)
	}
}

func (k *key) nodeTerms(terms []corev1.NodeSelectorTerm) {
	k.length(len(terms))
	for i := range terms {
		k.nodeTerm(&terms[i])
	}
}

func (k *key) nodeTerm(term *corev1.NodeSelectorTerm) {
	for _, list := range [2][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
		k.length(len(list))
		for i := range list {
			k.text(list[i].Key)
			k.text(string(list[i].Operator))
			k.texts(list[i].Values)
		}
	}
}

func (k *key) podTerms(terms []corev1.PodAffinityTerm) {
	k.length(len(terms))
	for i := range terms {
		k.podTerm(&terms[i])
	}
}

func (k *key) weightedTerms(terms []corev1.WeightedPodAffinityTerm) {
	k.length(len(terms))
	for i := range terms {
		k.number(int64(terms[i].Weight))
		k.podTerm(&terms[i].PodAffinityTerm)
	}
}

func (k *key) podTerm(term *corev1.PodAffinityTerm) {
	k.selector(term.LabelSelector)
	k.texts(term.Namespaces)
	k.text(term.TopologyKey)
	k.selector(term.NamespaceSelector)
	k.texts(term.MatchLabelKeys)
	k.texts(term.MismatchLabelKeys)
}

func (k *key) spread(list []corev1.TopologySpreadConstraint) {
	k.length(len(list))
	for i := range list {
		c := &list[i]
		k.number(int64(c.MaxSkew))
		k.text(c.TopologyKey)
		k.text(string(c.WhenUnsatisfiable))
		k.selector(c.LabelSelector)
		if k.present(c.MinDomains != nil) {
			k.number(int64(*c.MinDomains))
		}
		for _, policy := range [2]*corev1.NodeInclusionPolicy{c.NodeAffinityPolicy, c.NodeTaintsPolicy} {
			if k.present(policy != nil) {
				k.text(string(*policy))
			}
		}
		k.texts(c.MatchLabelKeys)
	}
}
