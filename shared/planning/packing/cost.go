package packing

// ratedCost returns the rated cost of a candidate: its price, or if Policy.SaveLimits is set the
// fraction of the limits that it uses.
func (p *Packer) ratedCost(c *CandidateType, zoneCapacityTypes uint64) float64 {
	price := c.priceIn(zoneCapacityTypes)
	if !p.problem.Policy.SaveLimits {
		return price
	}
	share := 0.0
	pool := &p.initialPools[c.Pool]
	for r := range pool.Quota {
		if left := pool.quotaOf(r); left != Unlimited && left > 0 {
			share = max(share, float64(c.Capacity[r])/float64(left))
		}
	}
	if pool.Nodes != Unlimited && pool.Nodes > 0 {
		share = max(share, 1/float64(pool.Nodes))
	}
	if share == 0 {
		return price
	}
	return share + float64(price*1e-6)
}
