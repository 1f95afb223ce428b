package consolidation

import "slices"

// cause is why a pod was created, or why a node was launched.
type cause string

// The causes of pods, and that of nodes which replace others.
const (
	load        cause = "load"
	rollout     cause = "rolling update"
	eviction    cause = "eviction"
	replacement cause = "replacement"
)

// recordCause records why a host was launched: if possible, because of the load of the pods that were planned for it. A host
// with the cause eviction is for evicted pods only, which had a place in the plan of their eviction.
func (m *model) recordCause(h *host) {
	found := map[cause]bool{}
	for _, p := range m.waiting {
		if slices.Contains(h.node.ExpectedPods, p.name) {
			found[p.cause] = true
		}
	}
	for _, c := range []cause{load, rollout, eviction} {
		if found[c] {
			h.cause = c
			return
		}
	}
}

// nominate delays the disruption of a host on which a plan expects pods.
func (m *model) nominate(name string) {
	for _, h := range m.hosts {
		if h.node.Name == name {
			h.node.NominatedUntil = m.now.Add(nominated)
		}
	}
}
