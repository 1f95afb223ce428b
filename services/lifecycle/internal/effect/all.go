package effect

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Job is what one decision leads to, and what to call it in an error.
type Job struct {
	Name    string
	Effects []Effect
}

// Split parts the removals of pods from the rest: they may take long, and the
// rest waits for none of them.
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

// All carries out jobs that do not rest on each other, as many at a time as
// Parallel says, and gives their errors in the order of the jobs. With one at a
// time they begin in that order. What has not begun when the context ends does
// not begin.
func (d Doer) All(ctx context.Context, jobs []Job) []error {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return len(j.Effects) == 0 })
	return d.Each(len(jobs), func(i int) (err error) {
		if ctx.Err() == nil {
			err = d.Do(ctx, nil, jobs[i].Effects...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", jobs[i].Name, err)
		}
		return nil
	})
}

// Each calls do for 0 to n-1, as many at a time as Parallel says, and gives the
// errors in that order. With one at a time the calls are in that order as well. A call
// that trips a bug is alone with it.
func (d Doer) Each(n int, do func(i int) error) []error {
	failures := make([]error, n)
	each(n, d.Parallel, func(i int) { failures[i] = safely(i, do) })
	return failures
}

// safely turns a panic into a bug, with its stack: nobody recovers from one in a worker
// otherwise, so that it would end the process.
func safely(i int, do func(i int) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.F("doing one of several things", fault.Bug, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do(i)
}

func each(n, parallel int, do func(i int)) {
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
