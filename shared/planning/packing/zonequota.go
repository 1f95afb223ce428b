package packing

import "math/bits"

// ZoneQuota is the remaining quota of one zone for new nodes of one network class: addresses, of
// which each node and each pod takes one, and nodes. Unlimited means that there is no count.
type ZoneQuota struct{ Addresses, Nodes int64 }

// Subtract subtracts one node with the given number of pods.
func (r *ZoneQuota) Subtract(pods int) {
	if r.Nodes != Unlimited {
		r.Nodes--
	}
	if r.Addresses != Unlimited {
		r.Addresses -= int64(1 + pods)
	}
}

// assignZonesIfScarce begins to assign bins to zones if any zone quota could run out with that many pods. It also assigns the bins
// that exist, so that their addresses count. Until now each zone had addresses for all of them.
func (p *Packer) assignZonesIfScarce(pods int) {
	if p.zoneQuotasScarce || !p.isZoneQuotaScarce(pods) {
		return
	}
	p.zoneQuotasScarce = true
	for b := range p.bins {
		p.assignZone(&p.bins[b])
		p.chargeZoneQuota(&p.bins[b], 1)
	}
}

// isZoneQuotaScarce reports whether any zone quota could run out with that many pods. Only then are
// bins assigned to zones.
func (p *Packer) isZoneQuotaScarce(pods int) bool {
	for _, r := range p.problem.ZoneQuotas {
		if r.Nodes != Unlimited && r.Nodes < int64(pods) || r.Addresses != Unlimited && r.Addresses < int64(2*pods) {
			return true
		}
	}
	return false
}

// podsByAddresses returns for how many pods of one more node of a candidate the best zone in the
// zone-capacity types has addresses.
func (p *Packer) podsByAddresses(k int, zoneCapacityTypes uint64) int {
	_, pods := p.bestZoneQuota(k, zoneCapacityTypes)
	return pods
}

// bestZoneQuota returns the zone quota with the most addresses left, of equal ones that with the most
// nodes left, and the number of pods; 0 for a zone without a zone quota, and -1 if no zone has
// capacity.
func (p *Packer) bestZoneQuota(k int, zoneCapacityTypes uint64) (zoneQuota, pods int) {
	pool := &p.problem.Pools[p.problem.Candidates[k].Pool]
	nodes := int64(0)
	zoneQuota, pods = -1, 0
	for left := zoneCapacityTypes & p.problem.Candidates[k].zoneCapacityTypes; left != 0; left &= left - 1 {
		at := bits.TrailingZeros64(left)
		if at >= len(pool.ZoneQuotas) || pool.ZoneQuotas[at] == 0 {
			return 0, int(Unlimited >> 1)
		}
		r := p.problem.ZoneQuotas[pool.ZoneQuotas[at]-1]
		n := int(min(r.Addresses-1, Unlimited>>1))
		if n > 0 && r.Nodes > 0 && (n > pods || n == pods && r.Nodes > nodes) {
			zoneQuota, pods, nodes = pool.ZoneQuotas[at], n, r.Nodes
		}
	}
	return zoneQuota, pods
}

// assignZone assigns a bin to the best zone quota.
func (p *Packer) assignZone(bin *Bin) {
	if !p.zoneQuotasScarce {
		return
	}
	zoneQuota, _ := p.bestZoneQuota(bin.Candidate, bin.ZoneCapacityTypes)
	if zoneQuota < 0 {
		return
	}
	pool, zoneCapacityTypes := &p.problem.Pools[p.problem.Candidates[bin.Candidate].Pool], uint64(0)
	for at := range 64 {
		of := 0
		if at < len(pool.ZoneQuotas) {
			of = pool.ZoneQuotas[at]
		}
		if of == zoneQuota {
			zoneCapacityTypes |= 1 << at
		}
	}
	bin.ZoneCapacityTypes, bin.zoneQuota = bin.ZoneCapacityTypes&zoneCapacityTypes, zoneQuota
}

// chargeZoneQuota subtracts a bin's addresses; sign -1 adds them back.
func (p *Packer) chargeZoneQuota(bin *Bin, sign int64) {
	if bin.zoneQuota <= 0 {
		return
	}
	r := &p.problem.ZoneQuotas[bin.zoneQuota-1]
	if r.Nodes != Unlimited {
		r.Nodes -= sign
	}
	if r.Addresses != Unlimited {
		r.Addresses -= sign * int64(1+bin.countPods())
	}
}

func (b *Bin) countPods() int {
	n := 0
	for _, pods := range b.Pods {
		n += pods.Count
	}
	return n
}

// spareAddressesOf returns for how many more pods a bin's zone has addresses.
func (p *Packer) spareAddressesOf(bin *Bin) int {
	if bin.zoneQuota <= 0 {
		return int(Unlimited >> 1)
	}
	return int(max(0, min(p.problem.ZoneQuotas[bin.zoneQuota-1].Addresses, Unlimited>>1)))
}
