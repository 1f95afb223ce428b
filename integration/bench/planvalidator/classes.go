package planvalidator

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// takesDevices reports whether the pod asks for more than machines of every size
// have. Of the rest much the same comes for a dollar on machines of all sizes, so
// that a bound loses nothing by forgetting which pods are too large for which.
// Devices come in few sizes at very different prices.
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

// selecting groups pods by what of them decides on where they may be: what they
// select and tolerate and, for those that take devices, their size.
func selecting(pods []*pod) [][]*pod {
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

// reach says for each site whether the pod may be there, whatever its size unless
// it takes devices.
func reach(one *pod, names []corev1.ResourceName, sites []site) []bool {
	want := vector(one.requests, names)
	serves := make([]bool, len(sites))
	for i, s := range sites {
		_, blocked := blocking(s.taints, one.Spec.Tolerations)
		serves[i] = !blocked && (!one.takesDevices() || fits(want, s.room)) && slices.ContainsFunc(s.metas(one), one.selects)
	}
	return serves
}

// fits errs on the side of fitting.
func fits(want, room []float64) bool {
	for r := range want {
		if want[r] > room[r]*(1+1e-9) {
			return false
		}
	}
	return true
}

func fitsAny(want []float64, serves []bool, sites []site) bool {
	for i := range sites {
		if serves[i] && fits(want, sites[i].room) {
			return true
		}
	}
	return false
}

// largestApart is the largest group of pods of which no two may share a host.
func largestApart(pods []*pod) map[*pod]bool {
	groups := map[string]map[*pod]bool{}
	var largest map[*pod]bool
	for _, p := range pods {
		for _, from := range requiredAnti(p) {
			t := affinityTerm(from, p.Pod)
			if t.topology != corev1.LabelHostname || !t.matches(p) {
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
