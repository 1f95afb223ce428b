package packing

// cost returns the rated cost of a column: its price, or if Policy.Tight is set the fraction of the
// limits that it uses.
func (p *Packer) cost(c *Column, planes uint64) float64 {
	price := c.price(planes)
	if !p.problem.Policy.Tight {
		return price
	}
	share := 0.0
	pool := &p.quotas[c.Pool]
	for r := range pool.Left {
		if left := pool.left(r); left != Unlimited && left > 0 {
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
