package host

import (
	"context"
	"fmt"
)

// Mutex lets one function run at a time, for a service that is not safe for
// concurrent use: its handler and its step go through the same gate. Who waits
// goes in order of arrival.
type Mutex struct {
	// token holds a token while nobody is inside. A channel and not a mutex,
	// because a waiter must be able to give up.
	token chan struct{}
}

// NewMutex makes a gate that is open.
func NewMutex() Mutex {
	g := Mutex{token: make(chan struct{}, 1)}
	g.token <- struct{}{}
	return g
}

// RunLocked waits for its turn and calls the function.
func (g Mutex) RunLocked(ctx context.Context, act func(ctx context.Context) error) error {
	select {
	case <-g.token:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the service's other work: %w", ctx.Err())
	}
	defer func() { g.token <- struct{}{} }()
	return act(ctx)
}

// WrapLocked puts a function behind the gate, such as a Loop's Step.
func (g Mutex) WrapLocked(act func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error { return g.RunLocked(ctx, act) }
}
