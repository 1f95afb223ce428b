package disruption

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
)

// maxDraws is how many sets are drawn in one pass: it bounds the time that a cluster
// at rest costs.
const maxDraws = 64

// drawsAfterFirst is how many more are drawn once one is good: better ones are seldom far.
const drawsAfterFirst = 8

// maxDrawnSize is how many nodes a drawn set has: few make a mixture, and the time that it
// takes goes with their pods.
const maxDrawnSize = 8

// drawSets tries sets other than the most wasteful nodes, and returns the one that saves
// most for each pod that it moves. Where a budget lets few nodes go at once, what those
// leave over seldom fills new nodes, and the next few would do no better alone; a
// mixture often does.
//
// The sets are drawn by dice that fall alike in every pass, so that one cluster has one
// answer, and is at rest once there is none.
func (p *evaluation) drawSets(try trySet) *attempt {
	list := p.wastefulNodes()
	most := min(len(p.firstWithinBudgets(list)), maxDrawnSize)
	if most < 2 {
		return nil
	}
	var best *attempt
	var falls randomSource
	better := func(a *attempt) bool { return best == nil || a.savingPerPod() > best.savingPerPod() }
	tried := map[string]bool{}
	for left := maxDraws; left > 0; left-- {
		set := p.drawSet(&falls, list, 2+falls.nextBelow(most-1))
		key := fmt.Sprint(indexesOf(set))
		if tried[key] || len(set) < 2 {
			continue
		}
		tried[key] = true
		if a := try(set, better); a != nil {
			if best == nil {
				left = min(left, drawsAfterFirst+1)
			}
			best = a
		}
	}
	return best
}

// savingPerPod is what each pod that is moved saves.
func (a *attempt) savingPerPod() float64 { return a.SavedPerHour / float64(a.PodsMoved) }

// drawSet takes n nodes of a list, in its order, as far as the budgets have room.
func (p *evaluation) drawSet(falls *randomSource, list []*candidate.Candidate, n int) []*candidate.Candidate {
	left := make([]int, len(list))
	for i := range left {
		left[i] = i
	}
	var chosen []int
	wanted := map[string]int{}
	for len(left) > 0 && len(chosen) < n {
		k := falls.nextBelow(len(left))
		i, last := left[k], len(left)-1
		left[k], left = left[last], left[:last]
		if pool := list[i].Node.NodePool; wanted[pool] < p.budgets.Left(pool, MultiNode.budgetReason()) {
			wanted[pool]++
			chosen = append(chosen, i)
		}
	}
	slices.Sort(chosen)
	var set []*candidate.Candidate
	for _, i := range chosen {
		set = append(set, list[i])
	}
	return set
}

// randomSource fall in the order of splitmix64, by Sebastiano Vigna.
type randomSource uint64

// nextBelow is the next fall, from 0 to n-1.
func (d *randomSource) nextBelow(n int) int {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}
