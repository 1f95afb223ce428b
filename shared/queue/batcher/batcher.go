// Package batcher lets concurrent callers share calls: of those that come while
// all lanes are taken, as many as one call can carry travel together next.
//
// It is how a service that handles hundreds of messages at a time makes tens of
// calls instead. There is no clock in it and no goroutine of its own, so a lone
// caller is never kept waiting, and what calls one after another, such as the
// simulator, sees every call as it made it.
//
// The invariants:
//
//   - At most Lanes calls are under way.
//   - Nobody waits while a lane is free, and who waits goes in order of arrival.
//   - Each caller gets its own answer. A call that was refused because of what
//     somebody else put into it is made again alone; one whose caller gave up is
//     made again by the others.
package batcher

import (
	"context"
	"fmt"
	"sync"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Options say how calls are shared.
type Options[T any] struct {
	// MaxCalls is how many calls may be under way at a time; at least one.
	MaxCalls int
	// MaxItems and MaxWeight are what one shared call carries at most. A caller that
	// has more goes alone; a MaxWeight of zero is no limit.
	MaxItems, MaxWeight int
	// ItemWeight gives an item's weight; nil is none.
	ItemWeight func(item T) int
	// Call makes the call.
	Call func(ctx context.Context, items []T) error
}

// CallBatcher shares calls among its callers. It is safe for concurrent use.
type CallBatcher[T any] struct {
	options Options[T]

	mu sync.Mutex
	// running is how many lanes are taken.
	running int
	// waiting are those that found none free, the first first.
	waiting []*request[T]
}

// request is a caller that waits.
type request[T any] struct {
	items []T
	// separate says that nobody else may come along.
	separate bool
	// outcome tells once what became of it.
	outcome chan outcome[T]
}

// outcome is one of three: a turn to drive, with others behind; the order to try
// again; or the call's end.
type outcome[T any] struct {
	call      bool
	followers []*request[T]
	retry     bool
	separate  bool
	err       error
}

// New makes a convoy.
func New[T any](o Options[T]) *CallBatcher[T] {
	o.MaxCalls, o.MaxItems = max(1, o.MaxCalls), max(1, o.MaxItems)
	return &CallBatcher[T]{options: o}
}

// Do has the items carried by a call, its own or a shared one.
func (c *CallBatcher[T]) Do(ctx context.Context, items ...T) error {
	if c.acquireOrEnqueue(nil) {
		// The ordinary case: nobody is in the way, and nobody comes along.
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

// addRequest waits for a lane, or for somebody who takes the rider along.
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
	// It is under way already, so what became of it will be told.
	return <-r.outcome, nil
}

// acquireOrEnqueue takes a free lane, or a place in the line for a rider.
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

// removeRequest takes the rider out of the line, and reports whether it still stood
// there.
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

// runCall makes the call for the driver and those behind, and tells each what
// became of it.
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

// passSlot hands the lane to the first who waits, together with those who fit into
// the same call, or gives it back.
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
