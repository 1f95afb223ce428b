package packing

import (
	"cmp"
	"math/bits"
	"slices"
)

// stage is one round of opening bins: some lots, and the columns of one stage.
type stage struct {
	p *Packer
	// ids are the lots, the most valuable pod first; the slices below are parallel.
	ids   []int
	left  []int
	need  []int64
	value []float64
	group []int
	// floor is at most the value, and falls along the list.
	floor []float64
	// groups are lots with the same columns and planes.
	groups []lotGroup
	// priced are the dimensions that have a price, and top the highest price of each
	// among the groups: no pod that fits is worth more than the room at these.
	priced []int
	top    []float64
	offers []candidate
	hopes  hopes
	// keenest are the groups by dimension, those first to whom it is worth most.
	keenest []int32
	// wants is what the pods of each group that are not in a bin need, by dimension.
	wants []float64
	// total is what all pods are worth; rest, those that are not in a bin.
	total, rest float64
	// spent is what the bins of this attempt cost, and most what they may.
	spent, most float64
	// before is what the bins of earlier stages cost: the plan is theirs and this.
	before float64
	// modest leaves out columns that could carry too much of the plan.
	modest bool
	// short is the shortlist as it was made for shortModest.
	short       []candidate
	shortModest bool
	columns     []int
	// cheapest are the same, by price.
	cheapest []priced
	scratch  *scratch
}

type lotGroup struct {
	columns Set
	planes  uint64
	prices  []float64
	host    float64
}

// candidate is a column on some planes as something to open next.
type candidate struct {
	column int
	planes uint64
	price  float64
	// factor makes a column look dearer that has few alternatives; 0 until that is
	// known, when the candidate is tried first.
	factor float64
	// admits says which groups may use it.
	admits []bool
	// lists are the lots by the dimension that they take most of, in their order.
	lists [][]int32
	// stale candidates have not been tried since bins were opened.
	stale bool
}

// newStage gathers the lots that some column of the stage can take.
func (p *Packer) newStage(number int, lots []int) *stage {
	s := &stage{p: p, scratch: &p.scratch}
	s.scratch.flags.empty()
	for k := range p.problem.Columns {
		if c := &p.problem.Columns[k]; c.Stage == number && p.problem.Pools[c.Pool].Holds(c.Capacity) && p.supplied(c) {
			s.columns = append(s.columns, k)
		}
	}
	if len(s.columns) == 0 {
		return nil
	}
	s.collect(lots)
	if len(s.ids) == 0 {
		return nil
	}
	s.appraise()
	return s
}

func (p *Packer) supplied(c *Column) bool { return c.Supply == 0 || p.problem.Supplies[c.Supply-1] > 0 }

// collect finds the lots' groups, and drops lots that fit no column.
func (s *stage) collect(lots []int) {
	p := s.p
	for _, id := range lots {
		lot := &p.lots[id]
		if p.left[id] == 0 || len(lot.Beside) > 0 {
			continue
		}
		g := s.groupOf(lot)
		if s.groups[g].columns == nil || !s.placeable(lot, &s.groups[g]) {
			continue
		}
		s.ids, s.group = append(s.ids, id), append(s.group, g)
	}
}

// groupOf finds or makes the group of a lot. Lots of equal columns share one set,
// so that it is enough to compare where the sets begin.
func (s *stage) groupOf(lot *Lot) int {
	for g := range s.groups {
		if s.groups[g].planes == lot.Planes && same(s.groups[g].columns, lot.Columns) {
			return g
		}
	}
	s.groups = append(s.groups, lotGroup{columns: lot.Columns, planes: lot.Planes})
	return len(s.groups) - 1
}

func same(a, b Set) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func (s *stage) placeable(lot *Lot, g *lotGroup) bool {
	for _, k := range s.columns {
		c := &s.p.problem.Columns[k]
		if g.columns.Has(k) && c.planes&g.planes != 0 && fits(lot.Need, c.Room) {
			return true
		}
	}
	return false
}

func (s *stage) worthOf(lot *Lot, g int) float64 {
	sum := 0.0
	for r, price := range s.groups[g].prices {
		sum += float64(price * float64(lot.Need[r]))
	}
	if s.groups[g].host > 0 && s.p.hosted(lot) {
		sum += s.groups[g].host
	}
	return sum
}

// hosted reports whether pods of the lot need a node each.
func (p *Packer) hosted(lot *Lot) bool {
	return p.lonely >= 0 && slices.ContainsFunc(lot.Marks, func(m Mark) bool { return m.Owner && m.Member && int(m.Rule) == p.lonely })
}

// appraise prices the resources for each set of columns. Pods that want different
// zones of one set compete for the same types: what they would pay is told apart by
// the prices of the columns, and hardly by those of the resources.
func (s *stage) appraise() {
	p, dims := s.p, s.p.problem.Dims
	s.top = make([]float64, dims)
	var parties []party
	of := make([]int, len(s.groups))
	for g := range s.groups {
		of[g] = slices.IndexFunc(parties, func(q party) bool { return same(q.columns, s.groups[g].columns) })
		if of[g] < 0 {
			of[g] = len(parties)
			parties = append(parties, party{columns: s.groups[g].columns, demand: make([]float64, dims+1)})
		}
		parties[of[g]].planes |= s.groups[g].planes
	}
	for i, id := range s.ids {
		p.demand(parties[of[s.group[i]]].demand, &p.lots[id], p.left[id])
	}
	p.appraise(s.columns, parties)
	for g := range s.groups {
		prices := parties[of[g]].prices
		s.groups[g].prices, s.groups[g].host = prices[:dims], prices[dims]
		p.hostPrice = max(p.hostPrice, prices[dims])
		for r := range s.top {
			s.top[r] = max(s.top[r], prices[r])
		}
	}
	s.rank()
	for r := range s.top {
		if s.top[r] > 0 && len(s.priced) < maxDims {
			s.priced = append(s.priced, r)
		}
	}
}

// dominant is the dimension of which a pod takes the largest part of a room.
func (s *stage) dominant(i int, room []int64) int {
	dims := s.p.problem.Dims
	best, at := -1.0, 0
	for slot, r := range s.priced {
		if room[r] <= 0 {
			continue
		}
		if part := float64(s.need[i*dims+r]) / float64(room[r]); part > best {
			best, at = part, slot
		}
	}
	return at
}

// candidate prepares a column for pods that may be on some planes; false when
// nobody may use it. The planes are not narrowed to those of the column: the bin
// may become another one.
func (s *stage) candidate(k int, planes uint64) (candidate, bool) {
	column := &s.p.problem.Columns[k]
	c := candidate{column: k, planes: planes, admits: s.scratch.flags.take(len(s.groups)), stale: true}
	c.price = s.p.cost(column, planes)
	if planes&column.planes == 0 {
		return c, false
	}
	any := false
	for g := range s.groups {
		c.admits[g] = s.groups[g].columns.Has(k) && s.groups[g].planes&planes == planes
		any = any || c.admits[g]
	}
	return c, any
}

// limit is what a candidate's room could be worth at most to the pods that may use
// it and are left: each resource goes to those who value it most.
func (s *stage) limit(c *candidate) float64 {
	sum, host, dims := 0.0, 0.0, s.p.problem.Dims
	for _, r := range s.priced {
		room := float64(max(0, s.p.problem.Columns[c.column].Room[r]))
		for _, g := range s.keenest[r*len(s.groups) : (r+1)*len(s.groups)] {
			if !c.admits[g] {
				continue
			}
			n := min(room, s.wants[int(g)*dims+r])
			sum += float64(s.groups[g].prices[r] * n)
			if room -= n; room <= 0 {
				break
			}
		}
	}
	for g, admitted := range c.admits {
		if admitted {
			host = max(host, s.groups[g].host)
		}
	}
	return sum + host
}

// rank lists for each dimension the groups to whom it is worth most first.
func (s *stage) rank() {
	n := len(s.groups)
	s.keenest = make([]int32, n*len(s.top))
	for r := range s.top {
		order := s.keenest[r*n : (r+1)*n]
		for g := range order {
			order[g] = int32(g)
		}
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(s.groups[b].prices[r], s.groups[a].prices[r]), cmp.Compare(a, b))
		})
	}
}

// list sorts the lots into the candidate's lists. It is done when the candidate is
// tried first: most never are.
func (s *stage) list(c *candidate) {
	room := s.p.problem.Columns[c.column].Room
	counts := [maxDims + 1]int32{}
	s.p.steps += len(s.ids)
	kinds := s.scratch.kinds(len(s.ids))
	for i := range s.ids {
		kinds[i] = 255
		if s.left[i] > 0 && c.admits[s.group[i]] {
			kinds[i] = uint8(s.dominant(i, room))
			counts[kinds[i]]++
		}
	}
	total := int32(0)
	for _, n := range counts {
		total += n
	}
	c.lists = s.scratch.lists.take(max(1, len(s.priced)))
	all, from := s.scratch.lots.take(int(total)), int32(0)
	for d := range c.lists {
		c.lists[d] = all[from : from : from+counts[d]]
		from += counts[d]
	}
	for i, kind := range kinds {
		if kind != 255 {
			c.lists[kind] = append(c.lists[kind], int32(i))
		}
	}
}

// planesOf lists the sets of planes that lots ask for, the widest last.
// maxDims bounds how many dimensions have a price: a list of lots is kept by each.
const maxDims = 32

func (s *stage) planesOf() []uint64 {
	var out []uint64
	for _, g := range s.groups {
		if !slices.Contains(out, g.planes) {
			out = append(out, g.planes)
		}
	}
	slices.SortFunc(out, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)), cmp.Compare(a, b))
	})
	return out
}
