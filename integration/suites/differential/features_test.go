package differential

import "pgregory.net/rapid"

// features are the features that a scenario may have.
type features struct {
	selectors, alternatives, preferences bool
	taints, weights, minValues, limits   bool
	spread, affinity, antiAffinity       bool
	namespaces, labelKeys, policies      bool
	ports, devices, sidecars             bool
	nodes, daemons                       bool
}

// group is a tested combination of features.
type group struct {
	name string
	on   features
}

// groups are tested one after the other.
var groups = []group{
	{"sizes", features{daemons: true, devices: true, sidecars: true}},
	{"selection", features{selectors: true, alternatives: true, taints: true, weights: true, devices: true}},
	{"preferences", features{selectors: true, alternatives: true, preferences: true, taints: true}},
	{"ports", features{ports: true, nodes: true, daemons: true}},
	{"spread", features{selectors: true, taints: true, spread: true, labelKeys: true}},
	{"policies", features{selectors: true, taints: true, spread: true, policies: true}},
	{"anti-affinity", features{antiAffinity: true, namespaces: true, nodes: true}},
	{"affinity", features{affinity: true, namespaces: true, nodes: true}},
	{"company", features{affinity: true, antiAffinity: true, namespaces: true, nodes: true}},
	{"limits", features{selectors: true, weights: true, limits: true, nodes: true}},
	{"minimum values", features{selectors: true, weights: true, minValues: true}},
	{"everything", features{
		selectors: true, alternatives: true, preferences: true, taints: true, weights: true, minValues: true, limits: true,
		spread: true, affinity: true, antiAffinity: true, namespaces: true, labelKeys: true, policies: true,
		ports: true, devices: true, sidecars: true, nodes: true, daemons: true,
	}},
}

// sometimes is true in a third of the draws of an enabled feature.
func sometimes(t *rapid.T, on bool, what string) bool {
	return on && rapid.IntRange(0, 2).Draw(t, what) == 2
}
