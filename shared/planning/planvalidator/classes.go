package planvalidator

import (
	"encoding/json"
	"slices"
)

// groupBySelectors groups pods by node selectors and tolerations.
func groupBySelectors(pods []*pod) [][]*pod {
	index := map[string]int{}
	var groups [][]*pod
	for _, one := range pods {
		parts := []any{one.Spec.NodeSelector, one.Spec.Tolerations}
		if a := one.Spec.Affinity; a != nil && a.NodeAffinity != nil {
			parts = append(parts, a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
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

// reachableSites returns for each site whether the pod may run there, with any size.
func reachableSites(one *pod, sites []launchSite) []bool {
	serves := make([]bool, len(sites))
	for i, s := range sites {
		_, blocked := untoleratedTaint(s.taints, one.Spec.Tolerations)
		serves[i] = !blocked && slices.ContainsFunc(s.metas(one), one.canRunOn)
	}
	return serves
}

func fitsInto(want, room []float64) bool {
	for r := range want {
		if want[r] > room[r] {
			return false
		}
	}
	return true
}

// fitsOffering reports whether pods of a size fit on an offering that serves them.
func fitsOffering(want []float64, serves []bool, sites []launchSite) bool {
	for i := range sites {
		if serves[i] && !sites[i].exists && fitsInto(want, sites[i].room) {
			return true
		}
	}
	return false
}
