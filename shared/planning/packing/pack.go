package packing

import (
	"cmp"
	"math"
	"slices"
)

// New returns a packer for the problem. It copies all quotas, and each node when it places a pod
// there. It changes the columns, which may only be shared with packers of the same policy.
func New(problem Problem) *Packer {
	p := &Packer{problem: problem, lonely: -1, content: newTallies(problem.Rules), trodden: make([]int32, len(problem.Nodes)), members: make([]int, len(problem.Rules))}
	p.problem.Pools, p.quotas = copied(problem.Pools), copied(problem.Pools)
	p.problem.Supplies, p.problem.Rations = slices.Clone(problem.Supplies), slices.Clone(problem.Rations)
	for i := range problem.Nodes {
		for _, t := range problem.Nodes[i].Tallies {
			p.members[t.Rule] += int(t.Members)
		}
	}
	p.sold = make([]Set, len(problem.Pools))
	for i := range p.sold {
		p.sold[i] = NewSet(len(problem.Columns))
	}
	for k := range p.problem.Columns {
		c := &p.problem.Columns[k]
		p.sold[c.Pool].Add(k)
		c.least = math.Inf(1)
		for _, o := range c.Offers {
			c.planes |= 1 << o.Plane
			c.least = min(c.least, o.Price)
		}
		if c.shelf = c.Stage; problem.Policy.Mixed {
			c.Stage = c.Mixed
		}
	}
	return p
}

// Pack places lots: first on existing nodes, then into open bins, then in new bins, one stage of
// columns after the other. It returns the number of the first lot; Left returns the number of unplaced
// pods.
func (p *Packer) Pack(lots []Lot) (first int) {
	first = len(p.lots)
	p.lots = append(p.lots, lots...)
	ids := make([]int, len(lots))
	for i, lot := range lots {
		p.left = append(p.left, lot.Count)
		ids[i] = first + i
	}
	for _, lot := range lots {
		p.asked += lot.Count
	}
	p.scarce = p.short(p.asked)
	p.ontoNodes(ids)
	p.accompany(ids)
	if p.problem.Policy.SmallFirst {
		p.grow(p.smallestFirst(ids))
		p.settle()
		return first
	}
	p.lonely = p.loneliest(ids)
	tried := 0
	for _, stage := range p.stages() {
		p.topUp(ids, tried)
		tried = len(p.bins)
		if s := p.newStage(stage, ids); s != nil {
			s.run()
		}
	}
	p.grow(ids)
	p.settle()
	return first
}

// smallestFirst sorts lots by the largest share that one pod takes of the total requests.
func (p *Packer) smallestFirst(ids []int) []int {
	total := make([]float64, p.problem.Dims)
	for _, id := range ids {
		for r, need := range p.lots[id].Need {
			total[r] += float64(float64(need) * float64(p.lots[id].Count))
		}
	}
	share := func(id int) float64 {
		most := 0.0
		for r, need := range p.lots[id].Need {
			if total[r] > 0 {
				most = max(most, float64(need)/total[r])
			}
		}
		return most
	}
	out := slices.Clone(ids)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(share(a), share(b)) })
	return out
}

// stages returns the stages of the columns, in order.
func (p *Packer) stages() []int {
	var out []int
	for k := range p.problem.Columns {
		if n := p.problem.Columns[k].Stage; !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// loneliest returns the rule that needs the most nodes; -1 without rules.
func (p *Packer) loneliest(ids []int) int {
	if len(p.problem.Rules) == 0 {
		return -1
	}
	hosts := make([]int, len(p.problem.Rules))
	best := -1
	for _, id := range ids {
		for _, m := range p.lots[id].Marks {
			if limit := int(p.problem.Rules[m.Rule].WithMember); m.Owner && m.Member && limit > 0 {
				hosts[m.Rule] += p.left[id]
				if best < 0 || hosts[m.Rule]/limit > hosts[best]/int(p.problem.Rules[best].WithMember) {
					best = int(m.Rule)
				}
			}
		}
	}
	return best
}

// Left returns how many pods of a lot are not placed.
func (p *Packer) Left(lot int) int { return p.left[lot] }

// Bins returns the nodes to launch.
func (p *Packer) Bins() []Bin { return p.bins }

// Cost returns the cost of the bins in US dollars per hour.
func (p *Packer) Cost() float64 {
	sum := 0.0
	for i := range p.bins {
		sum += p.problem.Columns[p.bins[i].Column].price(p.bins[i].Planes)
	}
	return sum
}

// Finish distributes the remaining limits to the bins. Call it once, after the last round.
func (p *Packer) Finish() {
	if p.singly {
		p.settle()
	}
	p.spare = copied(p.problem.Pools)
	p.loosen()
}

// Drop gives up the unplaced pods of a lot, so that later rounds do not place them.
func (p *Packer) Drop(lot int) { p.left[lot] = 0 }

// Quota returns the remaining limits of a pool.
func (p *Packer) Quota(pool int) Pool { return p.problem.Pools[pool] }

// Buyable reports whether limits and reservations allow one more node of a column.
func (p *Packer) Buyable(k int) bool {
	c := &p.problem.Columns[k]
	return p.problem.Pools[c.Pool].Holds(c.Capacity) && p.supplied(c)
}

// Addressable reports whether any zone in the planes has addresses for one more node of the column and
// one pod.
func (p *Packer) Addressable(k int, planes uint64) bool {
	return !p.scarce || p.holdsPods(k, planes) > 0
}

// Steps returns the effort so far, in the steps of Policy.Budget.
func (p *Packer) Steps() int { return p.steps }

// Spend adds effort of the caller.
func (p *Packer) Spend(steps int) { p.steps += steps }

// Spent reports whether the budget is used up, so that the plan is partial.
func (p *Packer) Spent() bool {
	return p.problem.Policy.Budget > 0 && p.steps > p.problem.Policy.Budget
}
