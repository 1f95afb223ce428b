package host

import (
	"context"
	"fmt"
)

// Gate lets one function run at a time, for a service that is not safe for
// concurrent use: its handler and its step go through the same gate. Who waits
// goes in order of arrival.
type Gate struct {
	// turn holds a token while nobody is inside. A channel and not a mutex,
	// because a waiter must be able to give up.
	turn chan struct{}
}

// NewGate makes a gate that is open.
func NewGate() Gate {
	g := Gate{turn: make(chan struct{}, 1)}
	g.turn <- struct{}{}
	return g
}

// Do waits for its turn and calls the function.
func (g Gate) Do(ctx context.Context, act func(ctx context.Context) error) error {
	select {
	case <-g.turn:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the service's other work: %w", ctx.Err())
	}
	defer func() { g.turn <- struct{}{} }()
	return act(ctx)
}

// Behind puts a function behind the gate, such as a Loop's Step.
func (g Gate) Behind(act func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error { return g.Do(ctx, act) }
}
