package packing

// Choice returns the columns that a bin could be bought as: large enough for its pods, in its pool and
// stage, and offered in its planes. Each bin may be larger than planned by its part of the remaining
// limits.
func (p *Packer) Choice(b int) Set {
	bin := &p.bins[b]
	if bin.choice != nil {
		return bin.choice
	}
	return p.choice(bin, bin.used, bin.Planes, bin.Columns)
}

func (p *Packer) choice(bin *Bin, used []int64, planes uint64, in Set) Set {
	was, out := &p.problem.Columns[bin.Column], NewSet(len(p.problem.Columns))
	in.EachAlso(p.sold[was.Pool], func(k int) bool {
		c := &p.problem.Columns[k]
		if c.shelf == was.shelf && c.Supply == was.Supply && c.planes&planes != 0 && fits(used, c.Room) && p.moderateLimits(was, c, bin.extra) {
			out.Add(k)
		}
		return true
	})
	return out
}

// moderateLimits reports whether a column does not exceed the planned capacity plus extra in any
// limited resource: limits count the largest type that a node may become.
func (p *Packer) moderateLimits(chosen, c *Column, extra []int64) bool {
	pool := &p.problem.Pools[c.Pool]
	for r := range pool.Left {
		if pool.left(r) == Unlimited {
			continue
		}
		most := chosen.Capacity[r]
		if extra != nil {
			most += extra[r]
		}
		if c.Capacity[r] > most {
			return false
		}
	}
	return true
}

// loosen distributes the remaining limits among the bins, so that launches have more types to choose
// from.
func (p *Packer) loosen() {
	waiting, within := make([]int64, len(p.problem.Pools)), map[*Pool]int64{}
	for b := range p.bins {
		p.bins[b].extra, p.bins[b].choice = nil, nil
		at := p.problem.Columns[p.bins[b].Column].Pool
		waiting[at]++
		within[p.spare[at].Within]++
	}
	for b := range p.bins {
		at := p.problem.Columns[p.bins[b].Column].Pool
		pool := &p.spare[at]
		if pool.limited() {
			p.loosenOne(&p.bins[b], pool, waiting[at], within[pool.Within])
		}
		waiting[at]--
		within[pool.Within]--
	}
}

// loosenOne gives a bin its part of the remaining limits, divided by the number of bins of the pool
// and of all pools within the shared quota.
func (p *Packer) loosenOne(bin *Bin, pool *Pool, sharers, within int64) {
	bin.extra = make([]int64, len(pool.Left))
	for r := range pool.Left {
		if pool.left(r) != Unlimited {
			bin.extra[r] = pool.part(r, sharers, within)
		}
	}
	chosen, largest := &p.problem.Columns[bin.Column], make([]int64, len(pool.Left))
	bin.choice = p.choice(bin, bin.used, bin.Planes, bin.Columns)
	bin.choice.Each(func(k int) bool {
		for r, c := range p.problem.Columns[k].Capacity {
			largest[r] = max(largest[r], c-chosen.Capacity[r])
		}
		return true
	})
	pool.take(largest, 1)
}

// part returns the part of one bin in the remaining quota of a resource.
func (p *Pool) part(resource int, sharers, within int64) int64 {
	part := max(0, p.Left[resource]) / sharers
	if p.Within != nil {
		part = min(part, max(0, p.Within.Left[resource])/within)
	}
	return part
}

// limited reports whether any resource has a limit.
func (p *Pool) limited() bool {
	for r := range p.Left {
		if p.left(r) != Unlimited {
			return true
		}
	}
	return false
}

// enough reports whether a bin with n more pods of a lot, as a node of the column, leaves enough
// variety for the pool.
func (p *Packer) enough(bin *Bin, lot *Lot, n, column int) bool {
	if p.problem.Pools[p.problem.Columns[column].Pool].Enough == nil {
		return true
	}
	used := make([]int64, p.problem.Dims)
	for r := range used {
		used[r] = bin.used[r] + lot.Need[r]*int64(n)
	}
	return p.varied(column, used, bin.Planes&lot.Planes, bin.Columns.And(lot.Columns))
}

// varied reports whether a node planned as the column leaves enough variety for the pool, given that
// limits keep it from becoming larger.
func (p *Packer) varied(column int, used []int64, planes uint64, in Set) bool {
	ask := p.problem.Pools[p.problem.Columns[column].Pool].Enough
	return ask == nil || ask(p.choice(&Bin{Column: column}, used, planes, in), planes)
}

// settle changes every bin to the cheapest column that holds it.
func (p *Packer) settle() {
	for b := range p.bins {
		bin := &p.bins[b]
		was := &p.problem.Columns[bin.Column]
		best, price := bin.Column, was.price(bin.Planes)
		p.buy(bin, -1)
		bin.Columns.EachAlso(p.sold[was.Pool], func(k int) bool {
			c := &p.problem.Columns[k]
			if c.least >= price || c.Stage != was.Stage || c.planes&bin.Planes == 0 || c.Supply != was.Supply {
				return true
			}
			if cost := c.price(bin.Planes); cost < price && fits(bin.used, c.Room) && p.problem.Pools[c.Pool].Holds(c.Capacity) && p.varied(k, bin.used, bin.Planes, bin.Columns) {
				best, price = k, cost
			}
			return true
		})
		bin.Column = best
		p.buy(bin, 1)
	}
}
