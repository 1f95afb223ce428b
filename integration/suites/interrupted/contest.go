package interrupted

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/meter"
)

// Side is one of the two services in the comparison.
type Side struct {
	Name string
	// ready prepares the service, which is not measured, and returns the function that
	// runs it on the bench until its context ends.
	ready func(ctx context.Context, b *bench, messages []Message) (run func(ctx context.Context) error, err error)
}

// Joist and Karpenter are the two sides.
var (
	Joist     = Side{"joist", readyJoist}
	Karpenter = Side{"karpenter", readyKarpenter}
)

// Result is one side's result in one scene.
type Result struct {
	Side     string `json:"side"`
	Messages int    `json:"messages"`
	// Known is the percentage of messages about the cluster's instances.
	Known int `json:"known"`
	// QueueMS and APIMS are the scene's round trips in milliseconds.
	QueueMS int64 `json:"queueMs"`
	APIMS   int64 `json:"apiMs"`
	// PerSecond is the number of messages processed and deleted per second.
	PerSecond float64 `json:"perSecond"`
	// CPUMicros is the CPU time of the whole process per message in microseconds,
	// including the SQS model and the garbage collector.
	CPUMicros float64 `json:"cpuMicros"`
	Allocs    float64 `json:"allocs"`
}

// Match makes both sides process the same messages, alternately, and returns for each the
// round with the median CPU time, because some work happens only once per process, and
// the machine's load varies.
func Match(ctx context.Context, scene Scene, known int, messages []Message, rounds int) ([]Result, error) {
	sides := []Side{Joist, Karpenter}
	played := make([][]Result, len(sides))
	for range rounds {
		for i, side := range sides {
			result, err := Play(ctx, side, scene, known, messages)
			if err != nil {
				return nil, err
			}
			played[i] = append(played[i], result)
		}
	}
	medians := make([]Result, len(sides))
	for i := range sides {
		slices.SortFunc(played[i], func(a, b Result) int { return cmp.Compare(a.CPUMicros, b.CPUMicros) })
		medians[i] = played[i][len(played[i])/2]
	}
	return medians, nil
}

// Play makes one side process messages that are all in the queue at the start.
func Play(ctx context.Context, side Side, scene Scene, known int, messages []Message) (Result, error) {
	b := newBench(scene)
	for _, m := range messages {
		b.queue.PutRaw(m.Body)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run, err := side.ready(ctx, b, messages)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", side.Name, err)
	}
	done := make(chan error, 1)
	began := meter.Start()
	go func() { done <- run(ctx) }()
	err = b.await(ctx, done, func() bool { return int(b.deleted.Load()) >= len(messages) })
	spent := began.Stop()
	cancel()
	if err != nil {
		return Result{}, fmt.Errorf("%s, %d messages: %w", side.Name, len(messages), err)
	}
	if err := <-done; err != nil {
		return Result{}, fmt.Errorf("%s did not stop cleanly: %w", side.Name, err)
	}
	if stats := b.queue.Stats(); stats.Deleted != len(messages) || b.dead.Stats().TotalIn() > 0 {
		return Result{}, fmt.Errorf("%s did not handle %d messages completely: %+v", side.Name, len(messages), stats)
	}
	n := float64(len(messages))
	return Result{
		Side: side.Name, Messages: len(messages), Known: known, QueueMS: scene.QueueTrip.Milliseconds(), APIMS: scene.APITrip.Milliseconds(),
		PerSecond: n / spent.WallS, CPUMicros: (spent.UserS + spent.SysS) * 1e6 / n, Allocs: float64(spent.Mallocs) / n,
	}, nil
}

// await checks the condition every millisecond.
func (b *bench) await(ctx context.Context, done <-chan error, holds func() bool) error {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if holds() {
				return nil
			}
		case err := <-done:
			return fmt.Errorf("it ended after %d messages: %w", b.deleted.Load(), err)
		case <-ctx.Done():
			return fmt.Errorf("only %d messages were handled: %w", b.deleted.Load(), ctx.Err())
		}
	}
}
