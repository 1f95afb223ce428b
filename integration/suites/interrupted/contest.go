package interrupted

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/meter"
)

// Side is one of the two.
type Side struct {
	Name string
	// ready builds what it runs on, which is not measured, and gives what serves the
	// bench until its context ends.
	ready func(ctx context.Context, b *bench, messages []Message) (run func(ctx context.Context) error, err error)
}

// Joist and Karpenter are the sides of the contest.
var (
	Joist     = Side{"joist", readyJoist}
	Karpenter = Side{"karpenter", readyKarpenter}
)

// Result is what one side made of one scene.
type Result struct {
	Side     string `json:"side"`
	Messages int    `json:"messages"`
	// Known is how many in a hundred are about the cluster's instances.
	Known int `json:"known"`
	// QueueMS and APIMS are the scene's trips.
	QueueMS int64 `json:"queueMs"`
	APIMS   int64 `json:"apiMs"`
	// PerSecond is how many were dealt with, and deleted, each second.
	PerSecond float64 `json:"perSecond"`
	// CPUMicros is of the whole process for each message, the model of SQS and the
	// garbage collector included.
	CPUMicros float64 `json:"cpuMicros"`
	Allocs    float64 `json:"allocs"`
}

// Match lets both sides deal with the same messages, in turns, and gives for each
// the round whose CPU is the median: a process does some things once, and a machine
// is never quite at rest.
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

// Play lets one side deal with messages, all of which are there at the start.
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
		return Result{}, fmt.Errorf("%s stopped badly: %w", side.Name, err)
	}
	if stats := b.queue.Stats(); stats.Deleted != len(messages) || b.dead.Stats().TotalIn() > 0 {
		return Result{}, fmt.Errorf("%s gave up or lost some of %d messages: %+v", side.Name, len(messages), stats)
	}
	n := float64(len(messages))
	return Result{
		Side: side.Name, Messages: len(messages), Known: known, QueueMS: scene.QueueTrip.Milliseconds(), APIMS: scene.APITrip.Milliseconds(),
		PerSecond: n / spent.WallS, CPUMicros: (spent.UserS + spent.SysS) * 1e6 / n, Allocs: float64(spent.Mallocs) / n,
	}, nil
}

// await looks each millisecond whether the condition holds.
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
			return fmt.Errorf("it ended with %d messages dealt with: %w", b.deleted.Load(), err)
		case <-ctx.Done():
			return fmt.Errorf("%d messages dealt with: %w", b.deleted.Load(), ctx.Err())
		}
	}
}
