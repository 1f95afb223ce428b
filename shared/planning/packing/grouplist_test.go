package packing

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCountUnfit checks that no pod of a skipped block fits, and that blocks of which a pod fits are not skipped, while pods
// are placed one after the other.
func TestCountUnfit(t *testing.T) {
	const dims = 2
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		s, l := stage{}, groupList{}
		for i := range random.IntN(6*blockSize) + 1 {
			s.unplaced = append(s.unplaced, random.IntN(3))
			s.requests = append(s.requests, random.Int64N(100), random.Int64N(100))
			if random.IntN(4) > 0 {
				l.groups = append(l.groups, int32(i))
			}
		}
		l.least = make([]int64, (len(l.groups)/blockSize+1)*dims)
		fits := func(at int, free []int64) bool {
			i := int(l.groups[at])
			return countFits(s.requests[i*dims:][:dims], free, s.unplaced[i]) > 0
		}
		for range 100 {
			free := []int64{random.Int64N(60) - 2, random.Int64N(60)}
			from := random.IntN(len(l.groups) + 1)
			unfit := l.countUnfit(&s, from, free)
			if from%blockSize > 0 && unfit > 0 || from+unfit > len(l.groups) {
				t.Fatalf("seed %d: %d pod groups are skipped from %d on, of %d", seed, unfit, from, len(l.groups))
			}
			for at := from; at < from+unfit; at++ {
				if fits(at, free) {
					t.Fatalf("seed %d: the pod at %d fits into %v, but is skipped from %d on", seed, at, free, from)
				}
			}
			s.unplaced[random.IntN(len(s.unplaced))] = 0
		}
		clear(s.unplaced)
		if unfit := l.countUnfit(&s, 0, []int64{100, 100}); unfit != len(l.groups) {
			t.Errorf("seed %d: all pods are placed, but %d of %d are skipped", seed, unfit, len(l.groups))
		}
	}
}

// randomStage returns a stage with hundreds of pod groups, some of which may only have one pod on a node.
func randomStage(random *rand.Rand) *stage {
	problem := Problem{
		Dims: 2, Pools: []Pool{{Quota: []int64{Unlimited, Unlimited}, Nodes: Unlimited}}, Rules: []Rule{{WithMember: 1}},
		Candidates: []CandidateType{
			{Allocatable: []int64{1000, 4000}, Prices: []ZonePrice{{Price: 1}}}, {Allocatable: []int64{1000, 1000}, Prices: []ZonePrice{{Price: 0.8}}},
		},
	}
	p, candidates := New(problem), NewSet(2)
	candidates.Add(0)
	candidates.Add(1)
	for i := range 20 * blockSize {
		group := Group{Requests: []int64{random.Int64N(900), random.Int64N(1000)}, Candidates: candidates, ZoneCapacityTypes: 1, Count: 1 + random.IntN(3)}
		if random.IntN(4) == 0 {
			group.Roles = []RuleRole{{Owner: true, Member: true}}
		}
		p.groups, p.unplaced = append(p.groups, group), append(p.unplaced, group.Count)
		if i%8 == 0 {
			p.unplaced[i] = 0
		}
	}
	ids := make([]int, len(p.groups))
	for i := range ids {
		ids[i] = i
	}
	return p.newStage(0, ids)
}

// advanceEach is advanceCursor without blocks.
func advanceEach(s *stage, o *option, d int) (i, n, steps int) {
	f := s.scratch
	most := s.p.hostPrice
	for _, r := range s.priced {
		most += s.highestPrices[r] * float64(max(0, f.free[r]))
	}
	for at := f.cursor[d]; at < len(o.byDimension[d].groups); at++ {
		i, taken := int(o.byDimension[d].groups[at]), 0
		if at == f.cursor[d] {
			taken = f.taken[d]
		}
		if taken == 0 && s.floor[i] > most*(1+1e-9) {
			continue
		}
		steps++
		n := countFits(s.requests[i*2:][:2], f.free, s.unplaced[i]-taken)
		if n = s.p.binCounts.countAllowed(s.p.groups[s.ids[i]].Roles, n); n > 0 {
			return i, n, steps
		}
	}
	return 0, 0, steps
}

// TestAdvanceCursorSkipsOnlyUnfit checks that blocks change neither the pod group that is found nor the number of steps.
func TestAdvanceCursorSkipsOnlyUnfit(t *testing.T) {
	found, skipped := 0, 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := randomStage(random)
		s.orderGroups(orders[seed%3])
		o, _ := s.newOption(int(seed%2), 1)
		s.sortGroups(&o)
		f := s.scratch
		for range 300 {
			f.free, f.cursor, f.taken = []int64{random.Int64N(1000) - 2, random.Int64N(1000)}, make([]int, 2), make([]int, 2)
			d := random.IntN(len(o.byDimension))
			list := o.byDimension[d].groups
			if f.cursor[d] = random.IntN(len(list)); random.IntN(2) == 0 {
				f.cursor[d] = 0
			}
			if group := int(list[f.cursor[d]]); s.unplaced[group] > 0 && random.IntN(3) == 0 {
				f.taken[d] = 1
			}
			first := pick{int(list[f.cursor[d]]), f.taken[d]}
			f.picks = f.picks[:0]
			s.p.binCounts.reset()
			s.p.binCounts.addPods([]RuleRole{{Owner: true, Member: true}}, random.IntN(2))
			wantGroup, wantCount, wantSteps := advanceEach(s, &o, d)
			before := s.p.usedSteps
			group, count := s.advanceCursor(&o, d)
			if steps := s.p.usedSteps - before; group*count != wantGroup*wantCount || count != wantCount || steps != wantSteps {
				t.Fatalf("seed %d: found %d pods of group %d in %d steps, want %d of %d in %d", seed, count, group, steps, wantCount, wantGroup, wantSteps)
			}
			if first.count > 0 && (group != first.group || count == 0) != slices.Contains(f.picks, first) {
				t.Fatalf("seed %d: after %v the picks are %v", seed, first, f.picks)
			}
			if count > 0 {
				found++
			}
			if wantSteps > blockSize {
				skipped++
			}
			s.unplaced[random.IntN(len(s.unplaced))] = 0
		}
	}
	if found == 0 || skipped == 0 {
		t.Errorf("%d searches find a pod, and %d pass more than a block", found, skipped)
	}
}
