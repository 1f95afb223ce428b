package packing

import "math"

// topUp adds pods to bins with free room, without a larger column. It starts at the given bin: earlier
// bins were already tried, and are no emptier.
func (p *Packer) topUp(ids []int, from int) {
	room := make([]int64, p.problem.Dims)
	for _, id := range ids {
		if lot := &p.lots[id]; p.left[id] > 0 && len(lot.Beside) == 0 {
			p.topUpWith(id, lot, from, room)
		}
	}
}

// topUpWith is topUp for one lot; room is a buffer.
func (p *Packer) topUpWith(id int, lot *Lot, from int, room []int64) {
	for b := from; b < len(p.bins) && p.left[id] > 0; b++ {
		bin := &p.bins[b]
		column := &p.problem.Columns[bin.Column]
		if !lot.Columns.Has(bin.Column) || column.planes&bin.Planes&lot.Planes == 0 {
			continue
		}
		if p.steps++; !p.carries(column, bin.used, lot.Need) {
			continue
		}
		for r, total := range column.Room {
			room[r] = total - bin.used[r]
		}
		if n := p.allowed(id, b, times(lot.Need, room, p.left[id]), bin.Column); n > 0 {
			p.join(id, b, n, bin.Column)
		}
	}
}

// allowed returns how many pods of a lot the rules and the pool allow in a bin, as a node of the
// column.
func (p *Packer) allowed(id, b, n, column int) int {
	lot := &p.lots[id]
	if n = min(n, p.spareAddresses(&p.bins[b])); n == 0 {
		return 0
	}
	if len(lot.Marks)+len(lot.Beside) > 0 {
		site := p.site(b)
		if n = site.admits(p.problem.Rules, lot, n); n == 0 || !p.company(lot, site) {
			return 0
		}
	}
	for n > 0 && !p.enough(&p.bins[b], lot, n, column) {
		n /= 2
	}
	return n
}

// site returns a bin's tallies, counted if necessary.
func (p *Packer) site(b int) *site {
	for len(p.binSites) <= b {
		p.binSites = append(p.binSites, site{})
	}
	s := &p.binSites[b]
	if !s.counted {
		s.counted = true
		s.tallies = nil
		for _, part := range p.bins[b].Parts {
			s.join(p.lots[part.Lot].Marks, part.Count)
		}
	}
	return s
}

// join adds pods to a bin, which becomes a node of the given column.
func (p *Packer) join(id, b, n, column int) {
	lot, bin := &p.lots[id], &p.bins[b]
	if column != bin.Column {
		p.buy(bin, -1)
		bin.Column = column
		p.buy(bin, 1)
	}
	bin.Planes &= lot.Planes
	bin.Columns = p.narrowed(bin.Columns, lot.Columns)
	for r, need := range lot.Need {
		bin.used[r] += need * int64(n)
	}
	p.charge(bin, -1)
	defer p.charge(bin, 1)
	p.place(id, n, p.site(b))
	for i := range bin.Parts {
		if bin.Parts[i].Lot == id {
			bin.Parts[i].Count += n
			return
		}
	}
	bin.Parts = append(bin.Parts, Part{id, n})
}

// evenly is the relative difference up to which two costs count as equal. A larger node is then better
// than two, because each node has overhead.
const evenly = 1e-6

// grow places the remaining pods one by one where they cost least: in a bin that may become a larger
// column, or in a new bin. It is for pods with affinity to other pods, and for pods that no stage
// could place.
func (p *Packer) grow(ids []int) {
	for progress := true; progress; {
		progress = false
		for _, id := range ids {
			for p.left[id] > 0 && !p.Spent() && p.growOne(id) {
				progress = true
			}
		}
	}
}

func (p *Packer) growOne(id int) bool {
	lot := &p.lots[id]
	if len(lot.Nodes) > 0 && len(lot.Beside) > 0 && p.companyOnNode(id) {
		return true
	}
	if len(lot.Columns) == 0 {
		return false
	}
	at, column, best := p.roomiest(id)
	k, n := p.alone(lot, p.left[id])
	if k >= 0 && p.mayLead(lot) {
		price := p.cost(&p.problem.Columns[k], lot.Planes)
		// The first pod of an affinity decides for all of them.
		if at < 0 || price < best*(1-evenly) || len(lot.Beside) > 0 && n > p.holdsOf(at, id) {
			p.openBin(id, k, n)
			return true
		}
	}
	if at < 0 {
		return false
	}
	p.join(id, at, 1, column)
	return true
}

// roomiest returns the bin in which one more pod of a lot costs least, the column that the bin then
// needs, and the extra cost; -1 if no bin fits.
func (p *Packer) roomiest(id int) (at, column int, extra float64) {
	lot := &p.lots[id]
	at, column, extra = -1, -1, math.Inf(1)
	for b := range p.bins {
		bin := &p.bins[b]
		p.steps++
		if bin.Planes&lot.Planes == 0 {
			continue
		}
		k, more := p.enlarged(bin, lot)
		if k >= 0 && more < extra && p.allowed(id, b, 1, k) > 0 {
			at, column, extra = b, k, more
		}
	}
	return at, column, extra
}

// holdsOf returns how many pods of a lot a bin could hold as the largest node that it may become.
func (p *Packer) holdsOf(b, id int) int {
	lot, bin, most := &p.lots[id], &p.bins[b], 0
	was, room := &p.problem.Columns[bin.Column], make([]int64, p.problem.Dims)
	p.buy(bin, -1)
	defer p.buy(bin, 1)
	bin.Columns.EachAlso(p.sold[was.Pool], func(k int) bool {
		c := &p.problem.Columns[k]
		if c.Stage != was.Stage || c.Supply != was.Supply || c.planes&bin.Planes&lot.Planes == 0 || !lot.Columns.Has(k) ||
			!p.supplied(c) || !p.problem.Pools[c.Pool].Holds(c.Capacity) {
			return true
		}
		p.steps++
		for r := range room {
			room[r] = c.Room[r] - bin.used[r]
		}
		most = max(most, times(lot.Need, room, p.left[id]))
		return true
	})
	return most
}

// enlarged returns the cheapest column of a bin's pool that holds one more pod, and its extra cost.
func (p *Packer) enlarged(bin *Bin, lot *Lot) (column int, extra float64) {
	planes := bin.Planes & lot.Planes
	was := &p.problem.Columns[bin.Column]
	column, extra = -1, math.Inf(1)
	// Under limits a larger column may leave enough variety where a smaller one does not.
	picky := p.problem.Pools[was.Pool].Enough != nil && p.problem.Pools[was.Pool].limited()
	p.buy(bin, -1)
	defer p.buy(bin, 1)
	paid := p.cost(was, bin.Planes)
	bin.Columns.EachAlso(p.sold[was.Pool], func(k int) bool {
		c := &p.problem.Columns[k]
		p.steps++
		if !p.carries(c, bin.used, lot.Need) || c.Stage != was.Stage || c.Supply != was.Supply || c.planes&planes == 0 || !lot.Columns.Has(k) {
			return true
		}
		if price := p.cost(c, planes) - paid; price < extra && p.supplied(c) && p.problem.Pools[c.Pool].Holds(c.Capacity) &&
			(!picky || p.enough(bin, lot, 1, k)) {
			column, extra = k, price
		}
		return true
	})
	return column, extra
}

func (p *Packer) carries(c *Column, used, need []int64) bool {
	for r := range need {
		if used[r]+need[r] > c.Room[r] || c.Room[r] < 0 {
			return false
		}
	}
	return true
}

// alone returns the column for pods that fit in no bin: of the first stage that has any, the one that
// holds most of them, then the cheapest.
func (p *Packer) alone(lot *Lot, want int) (column, n int) {
	if len(lot.Beside) == 0 {
		want = 1 // All stages have run: the rest is placed pod by pod.
	}
	want = p.limited(lot, want)
	column, stage, price := -1, math.MaxInt, math.Inf(1)
	lot.Columns.Each(func(k int) bool {
		c := &p.problem.Columns[k]
		if c.planes&lot.Planes == 0 || c.Stage > stage || !p.Addressable(k, lot.Planes) || !p.supplied(c) || !p.problem.Pools[c.Pool].Holds(c.Capacity) {
			return true
		}
		m, cost := times(lot.Need, c.Room, want), p.cost(c, lot.Planes)
		if p.scarce {
			m = min(m, p.holdsPods(k, lot.Planes))
		}
		for m > 0 && !p.enoughAlone(k, lot, m) {
			m /= 2
		}
		if m > 0 && (c.Stage < stage || m > n || m == n && cost < price) {
			column, stage, n, price = k, c.Stage, m, cost
		}
		return true
	})
	return column, n
}

// limited returns how many pods of a lot may share a node under its own rules.
func (p *Packer) limited(lot *Lot, n int) int {
	var empty site
	return empty.admits(p.problem.Rules, lot, n)
}

func (p *Packer) openBin(id, k, n int) {
	bin := p.emptyBin(&p.lots[id], k)
	p.allot(&bin)
	p.buy(&bin, 1)
	p.charge(&bin, 1)
	p.bins = append(p.bins, bin)
	p.join(id, len(p.bins)-1, n, k)
}

func (p *Packer) emptyBin(lot *Lot, k int) Bin {
	return Bin{Column: k, Planes: lot.Planes, Columns: lot.Columns, used: make([]int64, p.problem.Dims)}
}

// enoughAlone reports whether a new node for n pods of a lot leaves enough variety.
func (p *Packer) enoughAlone(k int, lot *Lot, n int) bool {
	if p.problem.Pools[p.problem.Columns[k].Pool].Enough == nil {
		return true
	}
	bin := p.emptyBin(lot, k)
	return p.enough(&bin, lot, n, k)
}
