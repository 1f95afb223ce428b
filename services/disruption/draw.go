package disruption

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
)

// maxDraws is how many random sets one evaluation tries. It bounds the cost of evaluating an idle
// cluster.
const maxDraws = 64

// drawsAfterFirst is how many more sets are drawn after the first good one.
const drawsAfterFirst = 8

// maxDrawnSize is how many nodes a random set has at most. Small sets are varied enough, and larger
// ones take longer.
const maxDrawnSize = 8

// drawSets tries random sets of wasteful nodes, and returns the one that saves most for each pod
// that it moves. If a budget allows few nodes at once, the most wasteful nodes together seldom fill
// new nodes, and neither do the next ones, but a mixture often does.
//
// The random source has the same seed in every evaluation, so that the same cluster gives the same
// result, and becomes idle if no set is found.
func (p *evaluation) drawSets(try trySet) *attempt {
	list := p.wastefulNodes()
	most := min(len(p.firstWithinBudgets(list)), maxDrawnSize)
	if most < 2 {
		return nil
	}
	var best *attempt
	var random randomSource
	isBetter := func(a *attempt) bool { return best == nil || a.savingPerPod() > best.savingPerPod() }
	tried := map[string]bool{}
	for left := maxDraws; left > 0; left-- {
		set := p.drawSet(&random, list, 2+random.nextBelow(most-1))
		key := fmt.Sprint(indexesOf(set))
		if tried[key] || len(set) < 2 {
			continue
		}
		tried[key] = true
		if a := try(set, isBetter); a != nil {
			if best == nil {
				left = min(left, drawsAfterFirst+1)
			}
			best = a
		}
	}
	return best
}

// savingPerPod returns the saving for each moved pod, in US dollars an hour.
func (a *attempt) savingPerPod() float64 { return a.SavedPerHour / float64(a.PodsMoved) }

// drawSet draws n nodes of a list within the budgets, and returns them in the list's order.
func (p *evaluation) drawSet(random *randomSource, list []*candidate.Candidate, n int) []*candidate.Candidate {
	left := make([]int, len(list))
	for i := range left {
		left[i] = i
	}
	var chosen []int
	wanted := map[string]int{}
	for len(left) > 0 && len(chosen) < n {
		k := random.nextBelow(len(left))
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

// randomSource generates the sequence of splitmix64, by Sebastiano Vigna.
type randomSource uint64

// nextBelow returns the next number from 0 to n-1.
func (d *randomSource) nextBelow(n int) int {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}
