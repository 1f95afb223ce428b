package effect

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Job is the effects of one decision, with its name for errors.
type Job struct {
	Name    string
	Effects []Effect
}

// Split separates pod removals, which may be slow, from the other effects, which do not wait for
// them.
func (j Job) Split() (rest, removals Job) {
	rest.Name, removals.Name = j.Name, j.Name
	for _, e := range j.Effects {
		switch e.(type) {
		case Evict, DeletePod:
			removals.Effects = append(removals.Effects, e)
		default:
			rest.Effects = append(rest.Effects, e)
		}
	}
	return rest, removals
}

// ExecuteJobs executes independent jobs, up to Parallel of them concurrently, and returns their
// errors in the order of the jobs. With Parallel up to one they run in order. Jobs that have not
// started when the context ends are not started.
func (d Executor) ExecuteJobs(ctx context.Context, jobs []Job) []error {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return len(j.Effects) == 0 })
	return d.ForEach(len(jobs), func(i int) (err error) {
		if ctx.Err() == nil {
			err = d.Execute(ctx, nil, jobs[i].Effects...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", jobs[i].Name, err)
		}
		return nil
	})
}

// ForEach calls do for 0 to n-1, up to Parallel calls concurrently, and returns the errors in that
// order. With Parallel up to one the calls are in order. A panic becomes the error of its call.
func (d Executor) ForEach(n int, do func(i int) error) []error {
	failures := make([]error, n)
	runParallel(n, d.Parallel, func(i int) { failures[i] = callSafely(i, do) })
	return failures
}

// callSafely turns a panic into fault.Bug with its stack. A panic in a worker goroutine would
// otherwise end the process.
func callSafely(i int, do func(i int) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.F("executing one of several tasks", fault.Bug, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do(i)
}

func runParallel(n, parallel int, do func(i int)) {
	if parallel <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(parallel, n) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}
