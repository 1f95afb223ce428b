package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// FindStrandedPods are pods of nodes that would go for which no room might be left, though
// result has a place for each of them: a plan puts pods where they fit best, but once
// they are evicted it is Kubernetes' scheduler that places those who come instead,
// one after the other, each on the emptiest node that takes it. A small one may then
// have the room that a large one needed. It is tried in a few orders in which they
// might come, on the nodes that stay and on those that result launches, as the cheapest
// of their options; the pods are those of the first order that leaves any out.
//
// What was taken before is played in the same way, in the same orders. Of what pods
// say of each other, required anti-affinity over host names and host ports count; who
// is spread over, or belongs into, a wider domain stays in that which result has for
// it. The scheduler's weights for spread by default, images and preferences do not.
func (s *Simulation) FindStrandedPods(result planning.Result, nodes ...int) []planning.PodRef {
	return s.standing.rehearsing().stranded(&result, nodes)
}

// arrangements are the orders in which pods may come to the scheduler. Drains evict
// large pods first, which leaves the small ones to fill what is left: from all nodes
// together, or from each as far as the others have come. Where PodDisruptionBudgets
// let one pod of a kind go at a time, they come in rounds.
var arrangements = [...]func(leaving [][]mover) []mover{
	abreast,
	inRounds,
	func(leaving [][]mover) []mover { return largestFirst(slices.Concat(leaving...)) },
}

// mover is a pod that must find another node.
type mover struct {
	party *party
	pod   *planning.PodRef
	// home is the berth that it leaves, and planned that which the plan has for it, -1
	// if it has none.
	home, planned int
}

// abreast takes one pod of each node in turn, the largest of a node first.
func abreast(leaving [][]mover) []mover {
	var lists [][]mover
	for _, from := range leaving {
		lists = append(lists, largestFirst(from))
	}
	return inTurn(lists)
}

// inRounds takes one pod of each kind in turn, the largest kinds first.
func inRounds(leaving [][]mover) []mover {
	var lists [][]mover
	at := map[*party]int{}
	for _, m := range largestFirst(slices.Concat(leaving...)) {
		i, known := at[m.party]
		if !known {
			i, at[m.party] = len(lists), len(lists)
			lists = append(lists, nil)
		}
		lists[i] = append(lists[i], m)
	}
	return inTurn(lists)
}

// inTurn takes the first of each list, then the second of each, and so on.
func inTurn(lists [][]mover) []mover {
	var out []mover
	for k, more := 0, true; more; k++ {
		more = false
		for _, from := range lists {
			if k < len(from) {
				out, more = append(out, from[k]), true
			}
		}
	}
	return out
}

// largestFirst is the order in which drains evict: by cores, then by memory.
func largestFirst(pods []mover) []mover {
	out := slices.Clone(pods)
	slices.SortStableFunc(out, func(a, b mover) int {
		x, y := a.party.need, b.party.need
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	return out
}

// rehearsal plays removals with Kubernetes' scheduler in the planner's place: one
// trial for each arrangement, of which none knows of the others.
type rehearsal struct {
	st *standing
	// berths are the nodes of the world, and after them those that were launched.
	berths []*berth
	// homes are the pods that could be moved, by node of the world, in the beginning.
	homes   [][]run
	parties map[*podKind]*party
	// shunned are whom kinds keep away from.
	shunned map[*podKind][]selection
	trials  [len(arrangements)]trial
	// unplayed are removals that were taken, and have not been played yet: nobody may
	// ever ask.
	unplayed []agreed
}

// agreed is a removal that is going to happen.
type agreed struct {
	result planning.Result
	nodes  []int
}

// rehearsing is the standing's rehearsal, which begins when it is first wanted, and
// has to know all that is taken from then on.
func (st *standing) rehearsing() *rehearsal {
	if st.rehearsal != nil {
		return st.rehearsal
	}
	r := &rehearsal{st: st, homes: slices.Clone(st.runs), parties: map[*podKind]*party{}, shunned: map[*podKind][]selection{}}
	for i := range st.w.problem.Nodes {
		r.berths = append(r.berths, st.berth(i))
	}
	for k := range r.trials {
		r.trials[k].begin(r)
	}
	st.rehearsal = r
	return r
}

// stranded tries a removal on top of those that were taken.
func (r *rehearsal) stranded(result *planning.Result, nodes []int) []planning.PodRef {
	for _, one := range r.unplayed {
		r.play(&one.result, one.nodes, true)
	}
	r.unplayed = nil
	return r.play(result, nodes, false)
}

// take remembers a removal.
func (r *rehearsal) take(result *planning.Result, nodes []int) {
	r.unplayed = append(r.unplayed, agreed{*result, nodes})
}

// play moves the pods of nodes. Unless it is to last, all is as it was before.
func (r *rehearsal) play(result *planning.Result, nodes []int, lasting bool) (left []planning.PodRef) {
	known := len(r.berths)
	for i := range result.Nodes {
		r.berths = append(r.berths, r.launched(&result.Nodes[i]))
	}
	homes := r.world(nodes)
	leaving := r.leaving(homes, r.places(result, known))
	for k, arranged := range arrangements {
		t := &r.trials[k]
		t.arrive(r.berths[len(t.gone):])
		left = t.move(r, homes, leaving, arranged)
		if lasting {
			t.keep()
			continue
		}
		if t.undo(known); len(left) > 0 {
			break
		}
	}
	if !lasting {
		r.berths = r.berths[:known]
		for _, p := range r.parties {
			p.suits = p.suits[:min(len(p.suits), known)]
		}
	}
	return left
}

// leaving are the pods that ran on berths in the beginning, by berth.
func (r *rehearsal) leaving(homes []int, places map[string]int) [][]mover {
	out := make([][]mover, len(homes))
	for k, i := range homes {
		for _, one := range r.homes[i] {
			p := r.party(one)
			for n := range one.pods {
				at, ok := places[one.pods[n].UID]
				if !ok {
					at = -1
				}
				out[k] = append(out[k], mover{p, &one.pods[n], i, at})
			}
		}
	}
	return out
}

// world are nodes by their places in the world, without those that were going from
// the beginning.
func (r *rehearsal) world(nodes []int) []int {
	var out []int
	for _, j := range nodes {
		if i := r.st.at[j]; i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// places are the berths that a result has for pods, by UID.
func (r *rehearsal) places(result *planning.Result, known int) map[string]int {
	out, byName := map[string]int{}, r.st.names()
	for _, n := range result.Nominations {
		if i, ok := byName[cmp.Or(n.Node, n.Claim)]; ok && i < len(r.homes) {
			out[n.Pod.UID] = i
		}
	}
	for i := range result.Nodes {
		for _, placed := range result.Nodes[i].Pods {
			out[placed.Pod.UID] = known + i
		}
	}
	return out
}
