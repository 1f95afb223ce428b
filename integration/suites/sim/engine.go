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

// engine runs activities as coroutines, one at a time. At each call to a model the engine decides which task
// continues, so the seed decides every interleaving.
type engine struct {
	world         *embedded.EmbeddedCluster
	random        *rand.Rand
	tasks         []*task
	trace         hash.Hash64
	line          []byte   // the last call
	lastWrites    []string // the last calls, for the report of a failure
	calls, serial int
	// panics are those of steps; the host recovers panics of handlers.
	panics []string
	// chooseFault returns the fault of a task at a call; nil injects none. serial numbers the calls, so that both
	// phases of a call have the same number.
	chooseFault func(call embedded.Call, serial int, moment callPhase) callFault
	// onCall is called after each call to a model.
	onCall func(call embedded.Call, err error)
	// onRestart is called after an actor has restarted; it may be nil.
	onRestart func(a *embedded.Actor)
	// idle are the workers without a task.
	idle []chan func()
}

// callPhase says whether a fault comes before or after a call takes effect.
type callPhase string

const (
	beforeCall callPhase = "before"
	afterCall  callPhase = "after"
)

// callFault is the fault of one task at one call.
type callFault struct {
	// crash ends the task and restarts its actor.
	crash bool
	// pause stops the task for this time.
	pause time.Duration
}

// task is a running activity.
type task struct {
	activity embedded.Activity
	worker   chan func()
	run      func() // what the worker has not begun; nil once it has
	resume   chan struct{}
	yielded  chan struct{}
	done     bool
	crashed  bool
	until    time.Time
}

type taskKey struct{}

func newEngine(seed int64) *engine {
	dice := rand.New(rand.NewPCG(uint64(seed), 0x73696d)) //nolint:gosec // a seeded source: a run must be repeatable
	return &engine{random: dice, trace: fnv.New64a()}
}

// interceptCall runs a call of a task, with a fault before or after it.
func (e *engine) interceptCall(ctx context.Context, call embedded.Call, effect func() error) error {
	t, _ := ctx.Value(taskKey{}).(*task)
	if t == nil {
		return effect()
	}
	e.serial++
	serial := e.serial
	e.applyFault(t, call, serial, beforeCall)
	err := effect()
	e.recordCall(call, err)
	e.applyFault(t, call, serial, afterCall)
	return err
}

// applyFault crashes or pauses the task, or lets other tasks run first.
func (e *engine) applyFault(t *task, call embedded.Call, serial int, m callPhase) {
	if e.chooseFault == nil {
		return
	}
	b := e.chooseFault(call, serial, m)
	if b.crash {
		t.crashed = true
		runtime.Goexit()
	}
	if b.pause > 0 {
		t.until = e.world.Now().Add(b.pause)
	}
	if b.pause > 0 || call.Writes && m == beforeCall && e.random.IntN(4) == 0 {
		t.yielded <- struct{}{}
		<-t.resume
		if t.crashed {
			runtime.Goexit()
		}
	}
}

// recordCall adds the call to the hash of the run.
func (e *engine) recordCall(call embedded.Call, err error) {
	e.calls++
	e.line = appendCall(e.line[:0], e.world.Now(), call, err)
	_, _ = e.trace.Write(e.line)
	if call.Writes {
		if len(e.lastWrites) >= 400 {
			e.lastWrites = slices.Delete(e.lastWrites, 0, 100)
		}
		e.lastWrites = append(e.lastWrites, string(e.line))
	}
	if e.onCall != nil {
		e.onCall(call, err)
	}
}

// appendCall appends a line with the time, the call and its error.
func appendCall(line []byte, now time.Time, call embedded.Call, err error) []byte {
	line = now.AppendFormat(line, "15:04:05.000")
	line = append(append(line, ' '), call.Actor...)
	line = append(append(line, ' '), call.Port...)
	line = append(append(line, '.'), call.Verb...)
	line = append(append(line, ' '), call.About...)
	line = append(line, ' ')
	if err != nil {
		line = append(line, err.Error()...)
	}
	return line
}

// startTask creates a task, which runs when runTask is called.
func (e *engine) startTask(ctx context.Context, a embedded.Activity) *task {
	t := &task{activity: a, worker: e.takeWorker(), resume: make(chan struct{}), yielded: make(chan struct{})}
	e.tasks = append(e.tasks, t)
	ctx = context.WithValue(ctx, taskKey{}, t)
	t.run = func() {
		// Goexit also runs this function, so a crash ends the task like a return.
		defer func() {
			if r := recover(); r != nil {
				e.panics = append(e.panics, fmt.Sprintf("%s: panic: %v\n%s", a.Actor.Name, r, debug.Stack()))
				t.crashed = true
			}
			t.done = true
			t.yielded <- struct{}{}
		}()
		if !t.crashed {
			a.Run(ctx)
		}
	}
	return t
}

// takeWorker returns a worker without a task. A worker is a goroutine that runs one task after the other, so that its stack
// grows once and not in each task.
func (e *engine) takeWorker() chan func() {
	if last := len(e.idle) - 1; last >= 0 {
		worker := e.idle[last]
		e.idle = e.idle[:last]
		return worker
	}
	worker := make(chan func())
	go func() {
		for run := range worker {
			run()
		}
	}()
	return worker
}

// removeTask forgets a task that is done. The worker of a crashed task takes no more tasks, because Goexit ends it.
func (e *engine) removeTask(t *task) {
	e.tasks = slices.DeleteFunc(e.tasks, func(x *task) bool { return x == t })
	if t.crashed {
		close(t.worker)
	} else {
		e.idle = append(e.idle, t.worker)
	}
}

// runTask runs a task until it yields or ends.
func (e *engine) runTask(t *task) {
	t.resumeRun()
	if !t.done {
		return
	}
	e.removeTask(t)
	if t.crashed {
		e.restartActor(t.activity.Actor)
	}
}

// resumeRun starts or continues a task, and returns when it yields or ends.
func (t *task) resumeRun() {
	if run := t.run; run != nil {
		t.run = nil
		t.worker <- run
	} else {
		t.resume <- struct{}{}
	}
	<-t.yielded
}

// restartActor ends all tasks of an actor and restarts it.
func (e *engine) restartActor(a *embedded.Actor) {
	for _, t := range slices.Clone(e.tasks) {
		if t.activity.Actor == a {
			t.crashed = true
			t.resumeRun()
			e.removeTask(t)
		}
	}
	a.Restart()
	if e.onRestart != nil {
		e.onRestart(a)
	}
}

// runReadyTasks runs all tasks that can run at the current time.
func (e *engine) runReadyTasks(ctx context.Context) {
	for {
		ready := e.readyTasks()
		for _, a := range e.world.Activities() {
			if !e.isBusy(a.Actor) {
				ready = append(ready, e.startTask(ctx, a))
			}
		}
		if len(ready) == 0 {
			return
		}
		e.runTask(ready[e.random.IntN(len(ready))])
	}
}

// readyTasks returns the tasks that are not paused.
func (e *engine) readyTasks() []*task {
	var out []*task
	for _, t := range e.tasks {
		if !t.until.After(e.world.Now()) {
			out = append(out, t)
		}
	}
	return out
}

func (e *engine) isBusy(a *embedded.Actor) bool {
	return slices.ContainsFunc(e.tasks, func(t *task) bool { return t.activity.Actor == a })
}

// nextTime returns the time of the next activity or the next end of a pause.
func (e *engine) nextTime() time.Time {
	next := e.world.NextTime(e.isBusy)
	for _, t := range e.tasks {
		if t.until.After(e.world.Now()) && t.until.Before(next) {
			next = t.until
		}
	}
	return next
}

// endTasks ends every task, so that no goroutine remains.
func (e *engine) endTasks() {
	e.chooseFault = nil
	for _, t := range slices.Clone(e.tasks) {
		t.crashed = true
		t.resumeRun()
		e.removeTask(t)
	}
	for _, worker := range e.idle {
		close(worker)
	}
	e.idle = nil
}
