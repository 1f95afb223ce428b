package consolidation

import (
	"math"
	dice "math/rand/v2"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// scheduler places pods as Kubernetes's default configuration does, independently of
// Joist's implementation: NodeResourcesFit with LeastAllocated and
// NodeResourcesBalancedAllocation, and with double weight the default spread of a
// Deployment's pods over hosts (maxSkew 3) and zones (maxSkew 5). Ties are broken at
// random.
type scheduler struct{ rng *dice.Rand }

// place returns a host for a pod, or nil if it fits on none.
func (s scheduler) place(p *replica, hosts []*host) *host {
	var fit []*host
	for _, h := range hosts {
		if h.open() && h.admits(p) && p.app.need.fits(h.room()) {
			fit = append(fit, h)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	spread := s.spread(p, fit, hosts)
	var best *host
	most, equals := -1, 0
	for i, h := range fit {
		score := resources(p.app.need, h) + 2*spread[i]
		switch {
		case score > most:
			best, most, equals = h, score, 1
		case score == most:
			if equals++; s.rng.IntN(equals) == 0 {
				best = h
			}
		}
	}
	return best
}

// admits reports whether the host has the pod's capacity type.
func (h *host) admits(p *replica) bool {
	return p.app.capacityType == "" || h.node.Labels[karpenter.CapacityTypeLabelKey] == p.app.capacityType
}

// resources returns the sum of both resource plugins' scores, each from 0 to 100.
func resources(need room, h *host) int {
	var free, part [2]float64
	for d := range free {
		part[d] = float64(h.used[d]+need[d]) / float64(h.all[d])
		free[d] = 100 * (1 - part[d])
	}
	return (int(free[0])+int(free[1]))/2 + int(100*(1-math.Abs(part[0]-part[1])/2))
}

// spread returns the PodTopologySpread scores of the feasible hosts, from 0 to 100.
func (s scheduler) spread(p *replica, fit, hosts []*host) []int {
	zones := map[string]int{}
	for _, h := range fit {
		zones[h.zone] = 0
	}
	for _, h := range hosts {
		if _, counts := zones[h.zone]; counts {
			zones[h.zone] += h.counts[p.app.name]
		}
	}
	out := make([]int, len(fit))
	least, most := math.MaxInt, 0
	for i, h := range fit {
		overHosts := float64(h.counts[p.app.name])*math.Log(float64(len(fit)+2)) + 2
		overZones := float64(zones[h.zone])*math.Log(float64(len(zones)+2)) + 4
		out[i] = int(math.Round(overHosts + overZones))
		least, most = min(least, out[i]), max(most, out[i])
	}
	for i := range out {
		if most == 0 {
			out[i] = 100
		} else {
			out[i] = 100 * (most + least - out[i]) / most
		}
	}
	return out
}
