package packing

import "math/bits"

// Ration is the remaining quota of one zone for new nodes of one network class: addresses, of which
// each node and each pod takes one, and nodes of a spread placement group. Unlimited means that there
// is no count.
type Ration struct{ Addresses, Nodes int64 }

// Spend subtracts one node with the given number of pods.
func (r *Ration) Spend(pods int) {
	if r.Nodes != Unlimited {
		r.Nodes--
	}
	if r.Addresses != Unlimited {
		r.Addresses -= int64(1 + pods)
	}
}

// short reports whether any ration could run out with that many pods. Only then are bins assigned to
// zones.
func (p *Packer) short(pods int) bool {
	for _, r := range p.problem.Rations {
		if r.Nodes != Unlimited || r.Addresses != Unlimited && r.Addresses < int64(2*pods) {
			return true
		}
	}
	return false
}

// holdsPods returns for how many pods of one more node of a column the best zone in the planes has
// addresses.
func (p *Packer) holdsPods(k int, planes uint64) int {
	_, room := p.bestRation(k, planes)
	return room
}

// bestRation returns the ration with the most addresses left, and the number of pods; 0 for a zone
// without a ration, and -1 if no zone has room.
func (p *Packer) bestRation(k int, planes uint64) (ration, pods int) {
	pool := &p.problem.Pools[p.problem.Columns[k].Pool]
	ration, pods = -1, 0
	for left := planes & p.problem.Columns[k].planes; left != 0; left &= left - 1 {
		at := bits.TrailingZeros64(left)
		if at >= len(pool.Rations) || pool.Rations[at] == 0 {
			return 0, int(Unlimited >> 1)
		}
		r := p.problem.Rations[pool.Rations[at]-1]
		if room := int(min(r.Addresses-1, Unlimited>>1)); r.Nodes > 0 && room > pods {
			ration, pods = pool.Rations[at], room
		}
	}
	return ration, pods
}

// allot assigns a bin to the zone with the most addresses left.
func (p *Packer) allot(bin *Bin) {
	if !p.scarce {
		return
	}
	ration, _ := p.bestRation(bin.Column, bin.Planes)
	if ration < 0 {
		return
	}
	pool, planes := &p.problem.Pools[p.problem.Columns[bin.Column].Pool], uint64(0)
	for at := range 64 {
		of := 0
		if at < len(pool.Rations) {
			of = pool.Rations[at]
		}
		if of == ration {
			planes |= 1 << at
		}
	}
	bin.Planes, bin.ration = bin.Planes&planes, ration
}

// charge subtracts a bin's addresses; sign -1 adds them back.
func (p *Packer) charge(bin *Bin, sign int64) {
	if bin.ration <= 0 {
		return
	}
	r := &p.problem.Rations[bin.ration-1]
	if r.Nodes != Unlimited {
		r.Nodes -= sign
	}
	if r.Addresses != Unlimited {
		r.Addresses -= sign * int64(1+bin.pods())
	}
}

func (b *Bin) pods() int {
	n := 0
	for _, part := range b.Parts {
		n += part.Count
	}
	return n
}

// spareAddresses returns for how many more pods a bin's zone has addresses.
func (p *Packer) spareAddresses(bin *Bin) int {
	if bin.ration <= 0 {
		return int(Unlimited >> 1)
	}
	return int(max(0, min(p.problem.Rations[bin.ration-1].Addresses, Unlimited>>1)))
}
