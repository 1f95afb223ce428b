package packing

import "sort"

// scratch is memory that all stages and orders reuse.
type scratch struct {
	room   []int64
	cursor []int
	taken  []int
	picks  []pick
	order  []int
	share  []float64
	kind   []uint8
	parts  []float64
	short  []candidate
	offers []candidate
	hopes  hopes
	rungs  []rung
	rows   []offerRow
	flags  arena[bool]
	lots   arena[int32]
	lists  arena[[]int32]
}

// arena allocates slices from larger blocks, until it is emptied.
type arena[T any] struct {
	piece []T
	used  int
}

// take returns n values for exclusive use. They are not zeroed.
func (a *arena[T]) take(n int) []T {
	if a.used+n > len(a.piece) {
		a.piece, a.used = make([]T, max(n, 2*len(a.piece), 1024)), 0
	}
	out := a.piece[a.used : a.used+n : a.used+n]
	a.used += n
	return out
}

func (a *arena[T]) empty() { a.used = 0 }

// pick is a number of pods of the i-th lot of a stage.
type pick struct{ lot, count int }

func (f *scratch) kinds(n int) []uint8 {
	if cap(f.kind) < n {
		f.kind = make([]uint8, n)
	}
	return f.kind[:n]
}

// fill picks pods for one node of a candidate so that its resources run out together. The next pod is
// always the most valuable one that fits, among lots that mainly need the resource with the largest
// free share. A pod that does not fit now will not fit later, because room only shrinks and rules only
// tighten, so each list is walked once. The picks are valid until the next call.
func (s *stage) fill(c *candidate) (value float64, picks []pick) {
	if c.lists == nil {
		s.list(c)
	}
	f, column := s.scratch, &s.p.problem.Columns[c.column]
	f.room = append(f.room[:0], column.Room...)
	f.picks = f.picks[:0]
	f.cursor, f.taken = zeroed(f.cursor, len(c.lists)), zeroed(f.taken, len(c.lists))
	s.p.content.clear()
	for {
		d, i, n := s.next(c, column)
		if n == 0 {
			break
		}
		need := s.need[i*len(f.room) : (i+1)*len(f.room)]
		for r := range need {
			f.room[r] -= need[r] * int64(n)
		}
		s.p.content.add(s.p.lots[s.ids[i]].Marks, n)
		f.taken[d] += n
		value += float64(s.value[i] * float64(n))
	}
	for d := range c.lists {
		s.leave(c, d)
	}
	return value, f.picks
}

// next returns the list, and the first lot in it, of which n pods fit.
func (s *stage) next(c *candidate, column *Column) (d, i, n int) {
	if len(c.lists) == 1 {
		i, n = s.advance(c, 0)
		return 0, i, n
	}
	f := s.scratch
	f.order, f.share = f.order[:0], f.share[:0]
	for d := range c.lists {
		r := s.priced[d]
		f.order = append(f.order, d)
		f.share = append(f.share, float64(f.room[r])/float64(max(1, column.Room[r])))
	}
	for a := 1; a < len(f.order); a++ {
		for b := a; b > 0 && f.share[f.order[b]] > f.share[f.order[b-1]]; b-- {
			f.order[b], f.order[b-1] = f.order[b-1], f.order[b]
		}
	}
	open := 0
	for at, d := range f.order {
		i, n := s.advance(c, d)
		if n == 0 {
			continue
		}
		for _, other := range f.order[at+1:] {
			if f.cursor[other] < len(c.lists[other]) {
				open++
			}
		}
		if open > 0 {
			n = 1 // The free shares change with each pod.
		}
		return d, i, n
	}
	return 0, 0, 0
}

// advance moves a list's cursor to the first lot that fits, and returns how many of its pods fit.
func (s *stage) advance(c *candidate, d int) (i, n int) {
	f, list := s.scratch, c.lists[d]
	room, dims := f.room, len(f.room)
	most := 0.0
	for _, r := range s.priced {
		most += float64(s.top[r] * float64(max(0, room[r])))
	}
	most = (most + s.p.hostPrice) * (1 + 1e-9)
	for f.cursor[d] < len(list) {
		i = int(list[f.cursor[d]])
		if s.floor[i] > most && f.taken[d] == 0 {
			from := f.cursor[d]
			f.cursor[d] += sort.Search(len(list)-from, func(j int) bool { return s.floor[list[from+j]] <= most })
			continue
		}
		s.p.steps++
		n = times(s.need[i*dims:(i+1)*dims], room, s.left[i]-f.taken[d])
		if n > 0 {
			if marks := s.p.lots[s.ids[i]].Marks; len(marks) > 0 {
				n = s.p.content.room(marks, n)
			}
		}
		if n > 0 {
			return i, n
		}
		s.leave(c, d)
		f.cursor[d]++
	}
	return 0, 0
}

// leave records the picks of the lot under a cursor.
func (s *stage) leave(c *candidate, d int) {
	f := s.scratch
	if f.taken[d] > 0 {
		f.picks = append(f.picks, pick{int(c.lists[d][f.cursor[d]]), f.taken[d]})
		f.taken[d] = 0
	}
}

func zeroed(s []int, n int) []int {
	if cap(s) < n {
		return make([]int, n)
	}
	s = s[:n]
	clear(s)
	return s
}
