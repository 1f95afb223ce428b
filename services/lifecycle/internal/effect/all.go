package effect

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	failures := make([]error, len(jobs))
	each(len(jobs), d.Parallel, func(i int) {
		if ctx.Err() != nil {
			return
		}
		if err := d.Do(ctx, nil, jobs[i].Effects...); err != nil {
			failures[i] = fmt.Errorf("%s: %w", jobs[i].Name, err)
		}
	})
	return failures
}

// each calls do for 0 to n-1, in order where only one may be under way.
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
