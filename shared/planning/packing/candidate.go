package packing

import "math"

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

// list sorts the lots into the candidate's lists. It is done when the candidate is
// tried first: most never are.
func (s *stage) list(c *candidate) {
	each := s.parts(c)
	counts := [maxDims + 1]int32{}
	s.p.steps += len(s.ids)
	kinds := s.scratch.kinds(len(s.ids))
	for i := range s.ids {
		kinds[i] = 255
		if s.left[i] > 0 && c.admits[s.group[i]] {
			kinds[i] = uint8(s.dominant(i, each))
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

// parts is what one unit of each priced dimension is of a candidate's room: less
// than nothing where there is none.
func (s *stage) parts(c *candidate) []float64 {
	out := s.scratch.parts[:0]
	for _, r := range s.priced {
		if room := s.p.problem.Columns[c.column].Room[r]; room > 0 {
			out = append(out, 1/float64(room))
		} else {
			out = append(out, math.Inf(-1))
		}
	}
	s.scratch.parts = out
	return out
}

// dominant is the dimension of which a pod takes the largest part of a room; each is
// what one unit is of it.
func (s *stage) dominant(i int, each []float64) int {
	best, at := -1.0, 0
	for slot, need := range s.wanted[i*len(each) : (i+1)*len(each)] {
		if part := need * each[slot]; part > best {
			best, at = part, slot
		}
	}
	return at
}
