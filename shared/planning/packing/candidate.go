package packing

import "math"

// candidate is a column in some planes that could be opened next.
type candidate struct {
	column int
	planes uint64
	price  float64
	// factor raises the rated price of a column with few alternatives; 0 until the candidate is first
	// scored.
	factor float64
	// admits marks the groups that may use the candidate.
	admits []bool
	// lists are the lots by dominant dimension, in stage order.
	lists [][]int32
	// stale is true if the candidate has not been tried since the last bin was opened.
	stale bool
}

// candidate prepares a column for pods that may be in the planes; false if no group may use it. The
// planes are not narrowed to those of the column, because the bin may become another column.
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

// limit returns an upper bound on the value of a candidate's room to the remaining pods that may use
// it: each resource goes to the groups with the highest price.
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

// list sorts the lots into the candidate's lists. It is only done when the candidate is first tried;
// most never are.
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

// parts returns the fraction of the candidate's room that one unit of each priced dimension takes;
// negative infinity if it has no room.
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

// dominant returns the dimension of which a pod takes the largest fraction of the room; each is the
// result of parts.
func (s *stage) dominant(i int, each []float64) int {
	best, at := -1.0, 0
	for slot, need := range s.wanted[i*len(each) : (i+1)*len(each)] {
		if part := need * each[slot]; part > best {
			best, at = part, slot
		}
	}
	return at
}
