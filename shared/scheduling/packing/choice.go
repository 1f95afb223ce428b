package packing

// Choice is the set of columns that a node could be bought as: large enough for
// what it holds, in its pool and stage, and sold where it may be.
func (p *Packer) Choice(b int) Set {
	bin := &p.bins[b]
	return p.choice(bin, bin.used, bin.Planes, bin.Columns)
}

func (p *Packer) choice(bin *Bin, used []int64, planes uint64, in Set) Set {
	was, out := &p.problem.Columns[bin.Column], NewSet(len(p.problem.Columns))
	in.Each(func(k int) bool {
		c := &p.problem.Columns[k]
		if c.Pool == was.Pool && c.Stage == was.Stage && c.planes&planes != 0 && fits(used, c.Room) && p.moderateLimits(was, c) {
			out.Add(k)
		}
		return true
	})
	return out
}

// moderateLimits keeps a bin from becoming larger than planned in a resource that
// its pool has a limit for: limits count the largest type that a node may become
// (B104), and so the plan counts what it chose and nothing more.
func (p *Packer) moderateLimits(chosen, c *Column) bool {
	for r, left := range p.problem.Pools[c.Pool].Left {
		if left != Unlimited && c.Capacity[r] > chosen.Capacity[r] {
			return false
		}
	}
	return true
}

// enough asks the pool whether the columns that would still hold the bin are
// varied enough with n more pods of a lot.
func (p *Packer) enough(bin *Bin, lot *Lot, n int) bool {
	ask := p.problem.Pools[p.problem.Columns[bin.Column].Pool].Enough
	if ask == nil {
		return true
	}
	used := make([]int64, p.problem.Dims)
	for r := range used {
		used[r] = bin.used[r] + lot.Need[r]*int64(n)
	}
	return ask(p.choice(bin, used, bin.Planes&lot.Planes, bin.Columns.And(lot.Columns)), bin.Planes&lot.Planes)
}

// settle buys every bin as the cheapest column that holds it.
func (p *Packer) settle() {
	for b := range p.bins {
		bin := &p.bins[b]
		was := &p.problem.Columns[bin.Column]
		best, price := bin.Column, was.price(bin.Planes)
		p.buy(bin, -1)
		bin.Columns.Each(func(k int) bool {
			c := &p.problem.Columns[k]
			if c.Pool != was.Pool || c.Stage != was.Stage || c.planes&bin.Planes == 0 || c.Supply != was.Supply {
				return true
			}
			if cost := c.price(bin.Planes); cost < price && fits(bin.used, c.Room) && p.problem.Pools[c.Pool].holds(c.Capacity) {
				best, price = k, cost
			}
			return true
		})
		bin.Column = best
		p.buy(bin, 1)
	}
}
