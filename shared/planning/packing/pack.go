package packing

import (
	"cmp"
	"math"
	"slices"
)

// New prepares a problem. What is counted down is copied, a node as soon as
// something is put there; the columns, which are many, belong to the packer from
// then on, and to others that are made of the same ones with the same policy.
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

// Pack places lots: on nodes that exist, then beside what was placed before, then
// on new nodes, one stage of columns after the other. It returns the number of the
// first of them; Left says what found no place.
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

// smallestFirst orders lots by what a pod takes of all that is asked for.
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

// stages are the numbers of the columns' stages, in order.
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

// loneliest is the rule that demands the most nodes, -1 without any.
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

// Left is how many pods of a lot found no place.
func (p *Packer) Left(lot int) int { return p.left[lot] }

// Bins are the nodes to launch.
func (p *Packer) Bins() []Bin { return p.bins }

// Cost is what the bins cost in US dollars per hour.
func (p *Packer) Cost() float64 {
	sum := 0.0
	for i := range p.bins {
		sum += p.problem.Columns[p.bins[i].Column].price(p.bins[i].Planes)
	}
	return sum
}

// Finish shares out what limits have left over. It is called once, after the last
// round.
func (p *Packer) Finish() {
	if p.singly {
		p.settle()
	}
	p.spare = copied(p.problem.Pools)
	p.loosen()
}

// Drop gives up what is left of a lot, so that no later round takes it up again.
func (p *Packer) Drop(lot int) { p.left[lot] = 0 }

// Quota is what is left of a pool's limits.
func (p *Packer) Quota(pool int) Pool { return p.problem.Pools[pool] }

// Buyable reports whether limits and reservations allow one more node of a column.
func (p *Packer) Buyable(k int) bool {
	c := &p.problem.Columns[k]
	return p.problem.Pools[c.Pool].Holds(c.Capacity) && p.supplied(c)
}

// Addressable reports whether some zone on the planes has an address for one more
// node of a column, and for a pod.
func (p *Packer) Addressable(k int, planes uint64) bool {
	return !p.scarce || p.holdsPods(k, planes) > 0
}

// Steps is the effort so far, in the steps of Policy.Budget.
func (p *Packer) Steps() int { return p.steps }

// Spend counts effort that the caller makes on the packer's behalf.
func (p *Packer) Spend(steps int) { p.steps += steps }

// Spent reports whether the budget ran out, so that the plan is partial.
func (p *Packer) Spent() bool {
	return p.problem.Policy.Budget > 0 && p.steps > p.problem.Policy.Budget
}
