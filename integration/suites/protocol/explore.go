package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ModelAction is one step of a participant, in a form that is rendered only for a counterexample.
type ModelAction struct {
	Kind      uint8
	Who, What uint8
	// Swapped is set if the two writers changed places, to visit symmetric states once.
	Swapped bool
	// Rescue is set for actions that no participant must take: crashes and users. A state that only
	// such an action leads out of is stuck.
	Rescue bool
}

// Transition is an action and the state after it. Broken names the promise that the action breaks, or is "".
type Transition[S comparable] struct {
	Action ModelAction
	Next   S
	Broken string
}

// Model is a protocol whose states are values.
type Model[S comparable] interface {
	// Initial returns the first state.
	Initial() S
	// Steps appends every step from a state.
	Steps(s S, steps []Transition[S]) []Transition[S]
	// Check returns the promise that a state breaks, or "".
	Check(s S) string
	// IsSettled reports whether nothing remains to be done in a state.
	IsSettled(s S) bool
	// Sentence describes an action; swapped tells that the writers' names are exchanged.
	Sentence(a ModelAction, swapped bool) string
}

// Exploration is the result of an exploration.
type Exploration struct {
	States, Steps, Depth, Settled int
	Took                          time.Duration
	// Broken is the broken promise, or ""; Trace is the shortest list of sentences that leads to it.
	Broken string
	Trace  []string
}

// stuckPromise is broken by a state from which no settled state can be reached.
const stuckPromise = "every launch and every disruption can end"

// Text returns the counterexample as a numbered list.
func (r Exploration) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "broken promise: %s\n", r.Broken)
	for i, sentence := range r.Trace {
		fmt.Fprintf(&text, "%3d. %s\n", i+1, sentence)
	}
	return text.String()
}

// explorer has the visited states in breadth-first order.
type explorer[S comparable] struct {
	model   Model[S]
	states  []S
	parents []uint32
	actions []ModelAction
	index   map[S]uint32
	// next are the states behind each state, without crashes and users; those of state i end at nextEnd[i].
	next    []uint32
	nextEnd []int
	// onStep is called for each step.
	onStep func(s S, step Transition[S])
}

// exploreSteps visits every state of a model, the nearest first, and stops at the first broken promise. It calls onStep for each
// step.
func exploreSteps[S comparable](model Model[S], onStep func(s S, step Transition[S])) Exploration {
	began := time.Now()
	e := &explorer[S]{model: model, index: map[S]uint32{}, onStep: onStep}
	e.addState(model.Initial(), 0, ModelAction{})
	result := e.visitAll()
	if result.Broken == "" {
		e.checkEnds(&result)
	}
	result.States, result.Took = len(e.states), time.Since(began)
	return result
}

func (e *explorer[S]) addState(s S, parent uint32, a ModelAction) {
	e.index[s] = uint32(len(e.states))
	e.states, e.parents, e.actions = append(e.states, s), append(e.parents, parent), append(e.actions, a)
}

// visitAll visits the states level by level.
func (e *explorer[S]) visitAll() (result Exploration) {
	var steps []Transition[S]
	levelEnd := len(e.states)
	for at := 0; at < len(e.states); at++ {
		if at == levelEnd {
			result.Depth++
			levelEnd = len(e.states)
		}
		steps = e.model.Steps(e.states[at], steps[:0])
		result.Steps += len(steps)
		for _, step := range steps {
			e.onStep(e.states[at], step)
			broken := step.Broken
			if _, known := e.index[step.Next]; !known {
				e.addState(step.Next, uint32(at), step.Action)
				if broken == "" {
					broken = e.model.Check(step.Next)
				}
			}
			if broken != "" {
				result.Broken, result.Trace = broken, e.trace(at, step.Action)
				return result
			}
			if !step.Action.Rescue {
				e.next = append(e.next, e.index[step.Next])
			}
		}
		e.nextEnd = append(e.nextEnd, len(e.next))
	}
	return result
}

// checkEnds requires that a settled state can be reached from each state, without crashes and users. It
// goes through the states from the last to the first, until no state is added: a state's successors are
// mostly behind it.
func (e *explorer[S]) checkEnds(result *Exploration) {
	ends := make([]bool, len(e.states))
	for i, s := range e.states {
		if ends[i] = e.model.IsSettled(s); ends[i] {
			result.Settled++
		}
	}
	for changed := true; changed; {
		changed = false
		for i := len(e.states) - 1; i >= 0; i-- {
			if !ends[i] && slices.ContainsFunc(e.nextOf(i), func(n uint32) bool { return ends[n] }) {
				ends[i], changed = true, true
			}
		}
	}
	for i, end := range ends {
		if !end {
			result.Broken, result.Trace = stuckPromise, e.trace(int(e.parents[i]), e.actions[i])
			return
		}
	}
}

func (e *explorer[S]) nextOf(i int) []uint32 {
	if i == 0 {
		return e.next[:e.nextEnd[0]]
	}
	return e.next[e.nextEnd[i-1]:e.nextEnd[i]]
}

// trace returns the sentences of the actions up to a state and of one more action.
func (e *explorer[S]) trace(at int, last ModelAction) []string {
	actions := []ModelAction{last}
	for ; at > 0; at = int(e.parents[at]) {
		actions = append(actions, e.actions[at])
	}
	var out []string
	swapped := false
	for _, a := range slices.Backward(actions) {
		out = append(out, e.model.Sentence(a, swapped))
		swapped = swapped != a.Swapped
	}
	return out
}
