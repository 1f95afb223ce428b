// Package batcher lets concurrent callers share calls: requests that arrive while MaxCalls calls are in flight share
// the next free call, up to its limits.
//
// A service that handles hundreds of messages at a time thus makes tens of calls. The package has no clock and no
// goroutine, so a single caller is never delayed, and sequential callers, such as the simulator, make exactly their
// own calls.
//
// The invariants:
//
//   - At most MaxCalls calls are in flight.
//   - A caller waits only while MaxCalls calls are in flight. Waiting callers proceed in order of arrival.
//   - Each caller gets its own result. If a shared call fails because of one caller's items,
//     every caller repeats it separately; if the calling caller's context ends, the others retry.
package batcher

import (
	"context"
	"fmt"
	"sync"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Options configure how calls are shared.
type Options[T any] struct {
	// MaxCalls is how many calls may be in flight; at least one.
	MaxCalls int
	// MaxItems and MaxWeight limit one shared call. A caller with more makes its own call; a MaxWeight of zero is no
	// limit.
	MaxItems, MaxWeight int
	// ItemWeight returns an item's weight; nil means 0.
	ItemWeight func(item T) int
	// Call makes the call.
	Call func(ctx context.Context, items []T) error
}

// CallBatcher shares calls among its callers. It is safe for concurrent use.
type CallBatcher[T any] struct {
	options Options[T]

	mu sync.Mutex
	// running is how many calls are in flight.
	running int
	// waiting are the waiting requests in order of arrival.
	waiting []*request[T]
}

// request is a waiting caller.
type request[T any] struct {
	items []T
	// separate means that the request must not share its call.
	separate bool
	// outcome receives exactly one result.
	outcome chan outcome[T]
}

// outcome is one of three: the request must make the call (call), also for its followers; it must be retried; or the
// call returned err.
type outcome[T any] struct {
	call      bool
	followers []*request[T]
	retry     bool
	separate  bool
	err       error
}

// New returns a CallBatcher.
func New[T any](o Options[T]) *CallBatcher[T] {
	o.MaxCalls, o.MaxItems = max(1, o.MaxCalls), max(1, o.MaxItems)
	return &CallBatcher[T]{options: o}
}

// Do executes a call with the items, its own or a shared one.
func (c *CallBatcher[T]) Do(ctx context.Context, items ...T) error {
	if c.acquireOrEnqueue(nil) {
		// The usual case: a free slot and a call that is not shared.
		return c.runCall(ctx, items, nil).err
	}
	r := &request[T]{items: items, outcome: make(chan outcome[T], 1)}
	for {
		n, err := c.addRequest(ctx, r)
		if err != nil {
			return err
		}
		if n.call {
			n = c.runCall(ctx, r.items, n.followers)
		}
		if !n.retry {
			return n.err
		}
		r.separate = n.separate
	}
}

// addRequest waits for a free slot, or until another caller includes the request in its call.
func (c *CallBatcher[T]) addRequest(ctx context.Context, r *request[T]) (outcome[T], error) {
	if c.acquireOrEnqueue(r) {
		return outcome[T]{call: true}, nil
	}
	select {
	case n := <-r.outcome:
		return n, nil
	case <-ctx.Done():
	}
	if c.removeRequest(r) {
		return outcome[T]{}, fmt.Errorf("waiting for a call to share: %w", ctx.Err())
	}
	// The request is already in a call: wait for its result.
	return <-r.outcome, nil
}

// acquireOrEnqueue takes a free slot and returns true, or enqueues the request (if not nil) and returns false.
func (c *CallBatcher[T]) acquireOrEnqueue(r *request[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running < c.options.MaxCalls {
		c.running++
		return true
	}
	if r != nil {
		c.waiting = append(c.waiting, r)
	}
	return false
}

// removeRequest removes the request from the queue, and reports whether it was still waiting.
func (c *CallBatcher[T]) removeRequest(r *request[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.waiting {
		if w == r {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// runCall makes the call for the caller and the requests behind it, and sends each its outcome.
func (c *CallBatcher[T]) runCall(ctx context.Context, items []T, behind []*request[T]) (mine outcome[T]) {
	if len(behind) > 0 {
		items = append(make([]T, 0, c.options.MaxItems), items...)
		for _, r := range behind {
			items = append(items, r.items...)
		}
	}
	var err error
	called := false
	defer func() {
		c.passSlot()
		if !called {
			err = fault.F("sharing a call", fault.Bug, "it panicked in the hands of another caller")
		}
		theirs := outcome[T]{err: err}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			theirs = outcome[T]{retry: true}
		case fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied):
			theirs = outcome[T]{retry: true, separate: true}
		}
		for _, r := range behind {
			r.outcome <- theirs
		}
	}()
	err = c.options.Call(ctx, items)
	called = true
	if len(behind) > 0 && ctx.Err() == nil && fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied) {
		return outcome[T]{retry: true, separate: true}
	}
	return outcome[T]{err: err}
}

// passSlot passes the slot to the first waiting request, together with the requests that fit into the same call, or frees
// it.
func (c *CallBatcher[T]) passSlot() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.running--
		return
	}
	driver := c.waiting[0]
	n := 1
	if !driver.separate {
		items, weight := len(driver.items), c.requestWeight(driver)
		for ; n < len(c.waiting) && !c.waiting[n].separate; n++ {
			next := c.waiting[n]
			items, weight = items+len(next.items), weight+c.requestWeight(next)
			if items > c.options.MaxItems || c.options.MaxWeight > 0 && weight > c.options.MaxWeight {
				break
			}
		}
	}
	behind := append([]*request[T](nil), c.waiting[1:n]...)
	c.waiting = c.waiting[n:]
	if len(c.waiting) == 0 {
		c.waiting = nil
	}
	driver.outcome <- outcome[T]{call: true, followers: behind}
}

func (c *CallBatcher[T]) requestWeight(r *request[T]) int {
	if c.options.ItemWeight == nil {
		return 0
	}
	sum := 0
	for _, item := range r.items {
		sum += c.options.ItemWeight(item)
	}
	return sum
}
