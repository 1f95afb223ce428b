package host

import (
	"context"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// Gate lets one function run at a time, for a service that is not safe for
// concurrent use: its handler and its step go through the same gate.
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

// Step puts a step behind the gate.
func (g Gate) Step(step func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error { return g.Do(ctx, step) }
}

// Handler puts a handler behind the gate.
func (g Gate) Handler(handle Handler) Handler {
	return func(ctx context.Context, m queue.Message) error {
		return g.Do(ctx, func(ctx context.Context) error { return handle(ctx, m) })
	}
}

// Allowed puts a question such as Leads behind the gate.
func (g Gate) Allowed(ask func(ctx context.Context) (bool, error)) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (allowed bool, err error) {
		err = g.Do(ctx, func(ctx context.Context) error {
			var err error
			allowed, err = ask(ctx)
			return err
		})
		return allowed, err
	}
}
