package packing

import "sort"

// scratch is memory that all stages and orders reuse.
type scratch struct {
	free        []int64
	cursor      []int
	taken       []int
	picks       []pick
	order       []int
	freeShare   []float64
	dimension   []uint8
	fractions   []float64
	shortlist   []option
	options     []option
	bounds      boundHeap
	sizeClasses []sizeClass
	rows        []programRow
	flags       arena[bool]
	indexes     arena[int32]
	least       arena[int64]
	lists       arena[groupList]
}

// arena allocates slices from larger blocks, until it is reset.
type arena[T any] struct {
	block []T
	used  int
}

// allocate returns n values for exclusive use. They are not zeroed.
func (a *arena[T]) allocate(n int) []T {
	if a.used+n > len(a.block) {
		a.block, a.used = make([]T, max(n, 2*len(a.block), 1024)), 0
	}
	out := a.block[a.used : a.used+n : a.used+n]
	a.used += n
	return out
}

func (a *arena[T]) reset() { a.used = 0 }

// pick is a number of pods of the i-th pod group of a stage.
type pick struct{ group, count int }

func (f *scratch) dimensions(n int) []uint8 {
	if cap(f.dimension) < n {
		f.dimension = make([]uint8, n)
	}
	return f.dimension[:n]
}

// fillOption picks pods for one node of an option so that its resources run out together. The next
// pod is always the most valuable one that fits, among pod groups that mainly need the resource
// with the largest free share. A pod that does not fit now will not fit later, because free
// capacity only shrinks and rules only tighten, so each list is walked once. The picks are valid
// until the next call.
func (s *stage) fillOption(o *option) (value float64, picks []pick) {
	if o.byDimension == nil {
		s.sortGroups(o)
	}
	f, candidate := s.scratch, &s.p.problem.Candidates[o.candidate]
	f.free = append(f.free[:0], candidate.Allocatable...)
	f.picks = f.picks[:0]
	f.cursor, f.taken = zeroInts(f.cursor, len(o.byDimension)), zeroInts(f.taken, len(o.byDimension))
	s.p.binCounts.reset()
	for {
		d, i, n := s.nextGroup(o, candidate)
		if n == 0 {
			break
		}
		need := s.requests[i*len(f.free) : (i+1)*len(f.free)]
		for r := range need {
			f.free[r] -= need[r] * int64(n)
		}
		s.p.binCounts.addPods(s.p.groups[s.ids[i]].Roles, n)
		f.taken[d] += n
		value += float64(s.value[i] * float64(n))
	}
	for d := range o.byDimension {
		s.recordPicks(o, d)
	}
	return value, f.picks
}

// nextGroup returns the list, and the first pod group in it, of which n pods fit.
func (s *stage) nextGroup(o *option, candidate *CandidateType) (d, i, n int) {
	if len(o.byDimension) == 1 {
		i, n = s.advanceCursor(o, 0)
		return 0, i, n
	}
	f := s.scratch
	f.order, f.freeShare = f.order[:0], f.freeShare[:0]
	for d := range o.byDimension {
		r := s.priced[d]
		f.order = append(f.order, d)
		f.freeShare = append(f.freeShare, float64(f.free[r])/float64(max(1, candidate.Allocatable[r])))
	}
	for a := 1; a < len(f.order); a++ {
		for b := a; b > 0 && f.freeShare[f.order[b]] > f.freeShare[f.order[b-1]]; b-- {
			f.order[b], f.order[b-1] = f.order[b-1], f.order[b]
		}
	}
	open := 0
	for at, d := range f.order {
		i, n := s.advanceCursor(o, d)
		if n == 0 {
			continue
		}
		for _, other := range f.order[at+1:] {
			if f.cursor[other] < len(o.byDimension[other].groups) {
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

// advanceCursor moves a list's cursor to the first pod group that fits, and returns how many of its
// pods fit.
func (s *stage) advanceCursor(o *option, d int) (i, n int) {
	f, list := s.scratch, &o.byDimension[d]
	free, dims := f.free, len(f.free)
	most := 0.0
	for _, r := range s.priced {
		most += float64(s.highestPrices[r] * float64(max(0, free[r])))
	}
	most = (most + s.p.hostPrice) * (1 + 1e-9)
	for f.cursor[d] < len(list.groups) {
		from := f.cursor[d]
		i = int(list.groups[from])
		if f.taken[d] == 0 && s.floor[i] > most {
			f.cursor[d] += sort.Search(len(list.groups)-from, func(j int) bool { return s.floor[list.groups[from+j]] <= most })
			continue
		}
		if unfit := list.countUnfit(s, from, free); f.taken[d] == 0 && unfit > 0 {
			// A step counts a pod group, also if it is skipped: the plan must not depend on the blocks.
			s.p.usedSteps += unfit
			f.cursor[d] += unfit
			continue
		}
		s.p.usedSteps++
		n = countFits(s.requests[i*dims:(i+1)*dims], free, s.unplaced[i]-f.taken[d])
		if n > 0 {
			if roles := s.p.groups[s.ids[i]].Roles; len(roles) > 0 {
				n = s.p.binCounts.countAllowed(roles, n)
			}
		}
		if n > 0 {
			return i, n
		}
		s.recordPicks(o, d)
		f.cursor[d]++
	}
	return 0, 0
}

// recordPicks records the picks of the pod group under a cursor.
func (s *stage) recordPicks(o *option, d int) {
	f := s.scratch
	if f.taken[d] > 0 {
		f.picks = append(f.picks, pick{int(o.byDimension[d].groups[f.cursor[d]]), f.taken[d]})
		f.taken[d] = 0
	}
}

func zeroInts(s []int, n int) []int {
	if cap(s) < n {
		return make([]int, n)
	}
	s = s[:n]
	clear(s)
	return s
}
