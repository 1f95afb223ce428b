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
	// Lanes is how many calls may be under way at a time; at least one.
	Lanes int
	// Items and Weight are what one shared call carries at most. A caller that
	// has more goes alone; a Weight of zero is no limit.
	Items, Weight int
	// Weigh gives an item's weight; nil is none.
	Weigh func(item T) int
	// Call makes the call.
	Call func(ctx context.Context, items []T) error
}

// Convoy shares calls among its callers. It is safe for concurrent use.
type Convoy[T any] struct {
	o Options[T]

	mu sync.Mutex
	// busy is how many lanes are taken.
	busy int
	// waiting are those that found none free, the first first.
	waiting []*rider[T]
}

// rider is a caller that waits.
type rider[T any] struct {
	items []T
	// alone says that nobody else may come along.
	alone bool
	// news tells once what became of it.
	news chan news[T]
}

// news is one of three: a turn to drive, with others behind; the order to try
// again; or the call's end.
type news[T any] struct {
	drive  bool
	behind []*rider[T]
	again  bool
	alone  bool
	err    error
}

// New makes a convoy.
func New[T any](o Options[T]) *Convoy[T] {
	o.Lanes, o.Items = max(1, o.Lanes), max(1, o.Items)
	return &Convoy[T]{o: o}
}

// Do has the items carried by a call, its own or a shared one.
func (c *Convoy[T]) Do(ctx context.Context, items ...T) error {
	if c.enter(nil) {
		// The ordinary case: nobody is in the way, and nobody comes along.
		return c.drive(ctx, items, nil).err
	}
	r := &rider[T]{items: items, news: make(chan news[T], 1)}
	for {
		n, err := c.board(ctx, r)
		if err != nil {
			return err
		}
		if n.drive {
			n = c.drive(ctx, r.items, n.behind)
		}
		if !n.again {
			return n.err
		}
		r.alone = n.alone
	}
}

// board waits for a lane, or for somebody who takes the rider along.
func (c *Convoy[T]) board(ctx context.Context, r *rider[T]) (news[T], error) {
	if c.enter(r) {
		return news[T]{drive: true}, nil
	}
	select {
	case n := <-r.news:
		return n, nil
	case <-ctx.Done():
	}
	if c.leave(r) {
		return news[T]{}, fmt.Errorf("waiting for a call to share: %w", ctx.Err())
	}
	// It is under way already, so what became of it will be told.
	return <-r.news, nil
}

// enter takes a free lane, or a place in the line for a rider.
func (c *Convoy[T]) enter(r *rider[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy < c.o.Lanes {
		c.busy++
		return true
	}
	if r != nil {
		c.waiting = append(c.waiting, r)
	}
	return false
}

// leave takes the rider out of the line, and reports whether it still stood
// there.
func (c *Convoy[T]) leave(r *rider[T]) bool {
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

// drive makes the call for the driver and those behind, and tells each what
// became of it.
func (c *Convoy[T]) drive(ctx context.Context, items []T, behind []*rider[T]) (mine news[T]) {
	if len(behind) > 0 {
		items = append(make([]T, 0, c.o.Items), items...)
		for _, r := range behind {
			items = append(items, r.items...)
		}
	}
	var err error
	called := false
	defer func() {
		c.pass()
		if !called {
			err = fault.F("sharing a call", fault.Bug, "it panicked in the hands of another caller")
		}
		theirs := news[T]{err: err}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			theirs = news[T]{again: true}
		case fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied):
			theirs = news[T]{again: true, alone: true}
		}
		for _, r := range behind {
			r.news <- theirs
		}
	}()
	err = c.o.Call(ctx, items)
	called = true
	if len(behind) > 0 && ctx.Err() == nil && fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied) {
		return news[T]{again: true, alone: true}
	}
	return news[T]{err: err}
}

// pass hands the lane to the first who waits, together with those who fit into
// the same call, or gives it back.
func (c *Convoy[T]) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.busy--
		return
	}
	driver := c.waiting[0]
	n := 1
	if !driver.alone {
		items, weight := len(driver.items), c.weight(driver)
		for ; n < len(c.waiting) && !c.waiting[n].alone; n++ {
			next := c.waiting[n]
			items, weight = items+len(next.items), weight+c.weight(next)
			if items > c.o.Items || c.o.Weight > 0 && weight > c.o.Weight {
				break
			}
		}
	}
	behind := append([]*rider[T](nil), c.waiting[1:n]...)
	c.waiting = c.waiting[n:]
	if len(c.waiting) == 0 {
		c.waiting = nil
	}
	driver.news <- news[T]{drive: true, behind: behind}
}

func (c *Convoy[T]) weight(r *rider[T]) int {
	if c.o.Weigh == nil {
		return 0
	}
	sum := 0
	for _, item := range r.items {
		sum += c.o.Weigh(item)
	}
	return sum
}
