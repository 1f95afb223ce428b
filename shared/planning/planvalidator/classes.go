package planvalidator

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// takesDevices reports whether the pod requests a resource that not all instance types have. Only such pods are
// also grouped by size: CPU and memory cost about the same on all sizes of instance types, but devices do not.
func (p *pod) takesDevices() bool {
	for name := range p.requests {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		default:
			return true
		}
	}
	return false
}

// groupBySelectors groups pods by node selectors, tolerations and, for pods with devices, size.
func groupBySelectors(pods []*pod) [][]*pod {
	index := map[string]int{}
	var groups [][]*pod
	for _, one := range pods {
		parts := []any{one.Spec.NodeSelector, one.Spec.Tolerations}
		if a := one.Spec.Affinity; a != nil && a.NodeAffinity != nil {
			parts = append(parts, a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if one.takesDevices() {
			parts = append(parts, one.requests)
		}
		id, _ := json.Marshal(parts) //nolint:errchkjson // Kubernetes' own types
		at, seen := index[string(id)]
		if !seen {
			at = len(groups)
			index[string(id)] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], one)
	}
	return groups
}

// reachableSites returns for each site whether the pod may run there. Size counts only for pods with devices.
func reachableSites(one *pod, names []corev1.ResourceName, sites []launchSite) []bool {
	want := toVector(one.requests, names)
	serves := make([]bool, len(sites))
	for i, s := range sites {
		_, blocked := untoleratedTaint(s.taints, one.Spec.Tolerations)
		serves[i] = !blocked && (!one.takesDevices() || fitsInto(want, s.room)) && slices.ContainsFunc(s.metas(one), one.canRunOn)
	}
	return serves
}

// fitsInto tolerates rounding errors in favour of fitting.
func fitsInto(want, room []float64) bool {
	for r := range want {
		if want[r] > room[r]*(1+1e-9) {
			return false
		}
	}
	return true
}

func fitsAny(want []float64, serves []bool, sites []launchSite) bool {
	for i := range sites {
		if serves[i] && fitsInto(want, sites[i].room) {
			return true
		}
	}
	return false
}

// largestSpreadGroup returns the largest group of pods of which no two may share a host.
func (s *Scenario) largestSpreadGroup(pods []*pod) map[*pod]bool {
	groups := map[string]map[*pod]bool{}
	var largest map[*pod]bool
	for _, p := range pods {
		for _, from := range requiredAnti(p) {
			t := s.newPodTerm(from, p.Pod)
			if t.topology != corev1.LabelHostname || !t.matchesPod(p) {
				continue
			}
			if groups[t.id()] == nil {
				groups[t.id()] = map[*pod]bool{}
			}
			groups[t.id()][p] = true
			if len(groups[t.id()]) > len(largest) {
				largest = groups[t.id()]
			}
		}
	}
	return largest
}
