package host

import (
	"context"
	"fmt"
)

// Mutex runs one function at a time, in order of arrival. A service that is not safe for concurrent use runs both its
// handler and its reconcile under one Mutex.
type Mutex struct {
	// token holds a token while the mutex is unlocked. It is a channel because a waiter must stop waiting when its
	// context ends.
	token chan struct{}
}

// NewMutex returns an unlocked Mutex.
func NewMutex() Mutex {
	g := Mutex{token: make(chan struct{}, 1)}
	g.token <- struct{}{}
	return g
}

// RunLocked waits for the mutex and calls the function. It returns an error without calling it if ctx ends first.
func (g Mutex) RunLocked(ctx context.Context, act func(ctx context.Context) error) error {
	select {
	case <-g.token:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the service's mutex: %w", ctx.Err())
	}
	defer func() { g.token <- struct{}{} }()
	return act(ctx)
}

// WrapLocked returns act wrapped in RunLocked, for example for Loop.Reconcile.
func (g Mutex) WrapLocked(act func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error { return g.RunLocked(ctx, act) }
}
