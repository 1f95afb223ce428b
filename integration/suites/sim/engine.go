package sim

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
)

// engine runs activities as coroutines: at most one goroutine runs at a time,
// and at every call to the world it hands the decision who goes on back to the
// engine. So a seed decides every interleaving.
type engine struct {
	world         *embedded.World
	dice          *rand.Rand
	tasks         []*task
	trace         hash.Hash64
	lines         []string // the last calls, for the report of a failure
	calls, serial int
	// panics are those of steps; the host recovers those of handlers.
	panics []string
	// strike decides what befalls a task at a call; nil lets everything pass.
	// serial numbers the calls, so that before and after are known to be of one.
	strike func(call embedded.Call, serial int, moment moment) blow
	// observe is told of every call that took place.
	observe func(call embedded.Call, err error)
	// restarted is told of every process that starts anew; nil tells nobody.
	restarted func(a *embedded.Actor)
}

// moment is before or after an effect.
type moment string

const (
	before moment = "before"
	after  moment = "after"
)

// blow is what befalls a task.
type blow struct {
	// crash ends the task and restarts its actor.
	crash bool
	// pause keeps the task where it is for that long.
	pause time.Duration
}

// task is one activity under way.
type task struct {
	activity embedded.Activity
	resume   chan struct{}
	yielded  chan struct{}
	done     bool
	crashed  bool
	until    time.Time
}

type taskKey struct{}

func newEngine(seed int64) *engine {
	dice := rand.New(rand.NewPCG(uint64(seed), 0x73696d)) //nolint:gosec // a seeded source: a run must be repeatable
	return &engine{dice: dice, trace: fnv.New64a()}
}

// tap is where tasks meet the world.
func (e *engine) tap(ctx context.Context, call embedded.Call, effect func() error) error {
	t, _ := ctx.Value(taskKey{}).(*task)
	if t == nil {
		return effect()
	}
	e.serial++
	serial := e.serial
	e.meet(t, call, serial, before)
	err := effect()
	e.note(call, err)
	e.meet(t, call, serial, after)
	return err
}

// meet lets the engine decide, and waits for its turn.
func (e *engine) meet(t *task, call embedded.Call, serial int, m moment) {
	if e.strike == nil {
		return
	}
	b := e.strike(call, serial, m)
	if b.crash {
		t.crashed = true
		runtime.Goexit()
	}
	if b.pause > 0 {
		t.until = e.world.Now().Add(b.pause)
	}
	if b.pause > 0 || call.Writes && m == before && e.dice.IntN(4) == 0 {
		t.yielded <- struct{}{}
		<-t.resume
		if t.crashed {
			runtime.Goexit()
		}
	}
}

// note writes the call into the trace.
func (e *engine) note(call embedded.Call, err error) {
	e.calls++
	text := ""
	if err != nil {
		text = err.Error()
	}
	line := fmt.Sprintf("%s %s %s.%s %s %s", e.world.Now().Format("15:04:05.000"), call.Actor, call.Port, call.Verb, call.About, text)
	_, _ = e.trace.Write([]byte(line))
	if call.Writes {
		if len(e.lines) >= 400 {
			e.lines = slices.Delete(e.lines, 0, 100)
		}
		e.lines = append(e.lines, line)
	}
	if e.observe != nil {
		e.observe(call, err)
	}
}

// start begins an activity; it runs at its first turn.
func (e *engine) start(ctx context.Context, a embedded.Activity) *task {
	t := &task{activity: a, resume: make(chan struct{}), yielded: make(chan struct{})}
	e.tasks = append(e.tasks, t)
	ctx = context.WithValue(ctx, taskKey{}, t)
	go func() {
		// Goexit runs this as well: a crash ends the task like its own end.
		defer func() {
			if r := recover(); r != nil {
				e.panics = append(e.panics, fmt.Sprintf("%s: panic: %v\n%s", a.Actor.Name, r, debug.Stack()))
				t.crashed = true
			}
			t.done = true
			t.yielded <- struct{}{}
		}()
		<-t.resume
		if !t.crashed {
			a.Run(ctx)
		}
	}()
	return t
}

// turn lets one task run until it yields or ends.
func (e *engine) turn(t *task) {
	t.resume <- struct{}{}
	<-t.yielded
	if !t.done {
		return
	}
	e.tasks = slices.DeleteFunc(e.tasks, func(x *task) bool { return x == t })
	if t.crashed {
		e.restart(t.activity.Actor)
	}
}

// restart kills whatever the actor still does and starts it anew.
func (e *engine) restart(a *embedded.Actor) {
	for _, t := range slices.Clone(e.tasks) {
		if t.activity.Actor == a {
			t.crashed = true
			t.resume <- struct{}{}
			<-t.yielded
			e.tasks = slices.DeleteFunc(e.tasks, func(x *task) bool { return x == t })
		}
	}
	a.Restart()
	if e.restarted != nil {
		e.restarted(a)
	}
}

// moments runs everything that can run at this moment.
func (e *engine) moments(ctx context.Context) {
	for {
		ready := e.ready()
		for _, a := range e.world.Activities() {
			if !e.busy(a.Actor) {
				ready = append(ready, e.start(ctx, a))
			}
		}
		if len(ready) == 0 {
			return
		}
		e.turn(ready[e.dice.IntN(len(ready))])
	}
}

// ready lists the tasks that do not pause.
func (e *engine) ready() []*task {
	var out []*task
	for _, t := range e.tasks {
		if !t.until.After(e.world.Now()) {
			out = append(out, t)
		}
	}
	return out
}

func (e *engine) busy(a *embedded.Actor) bool {
	return slices.ContainsFunc(e.tasks, func(t *task) bool { return t.activity.Actor == a })
}

// next is the next moment, pauses included.
func (e *engine) next() time.Time {
	next := e.world.Next(e.busy)
	for _, t := range e.tasks {
		if t.until.After(e.world.Now()) && t.until.Before(next) {
			next = t.until
		}
	}
	return next
}

// close ends every task, so that no goroutine is left.
func (e *engine) close() {
	e.strike = nil
	for _, t := range slices.Clone(e.tasks) {
		t.crashed = true
		t.resume <- struct{}{}
		<-t.yielded
	}
	e.tasks = nil
}
