package interrupted

import (
	"context"
	"fmt"
	"time"
)

// Outage is one side's recovery.
type Outage struct {
	Side string `json:"side"`
	// Cut is the unavailable dependency: "queue" or "api".
	Cut    string  `json:"cut"`
	ForS   float64 `json:"forS"`
	AfterS float64 `json:"afterS"`
}

const (
	// calm is the time before the outage.
	calm = 2 * time.Second
	// pace is the interval between messages.
	pace = 100 * time.Millisecond
	// patience is the time limit of a recovery.
	patience = 2 * time.Minute
)

// Recover cuts one side off for a time, in real time, while messages keep arriving, and
// measures the time from the end of the outage to the first processed message.
func Recover(ctx context.Context, side Side, scene Scene, cut string, length time.Duration) (Outage, error) {
	b := newBench(scene)
	link := &b.toQueue
	if cut == "api" {
		link = &b.toAPI
	}
	messages := Mix(int((calm+length+patience)/pace), 100, time.Now())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := Outage{Side: side.Name, Cut: cut, ForS: length.Seconds()}
	run, err := side.ready(ctx, b, messages)
	if err != nil {
		return out, fmt.Errorf("%s: %w", side.Name, err)
	}
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	go b.trickle(ctx, messages)
	fail := func(err error) (Outage, error) { return out, fmt.Errorf("%s without its %s: %w", side.Name, cut, err) }
	began := time.Now()
	if err := b.await(ctx, done, func() bool { return time.Since(began) >= calm }); err != nil {
		return fail(err)
	}
	if b.deleted.Load() == 0 {
		return fail(fmt.Errorf("it handled no message in the %s before the outage", calm))
	}
	link.cut.Store(true)
	if err := b.await(ctx, done, func() bool { return time.Since(began) >= calm+length }); err != nil {
		return fail(err)
	}
	before, ended := b.deleted.Load(), time.Now()
	link.cut.Store(false)
	err = b.await(ctx, done, func() bool { return b.deleted.Load() > before || time.Since(ended) > patience })
	if err != nil {
		return fail(err)
	}
	out.AfterS = time.Since(ended).Seconds()
	return out, nil
}

// trickle sends the messages one after the other.
func (b *bench) trickle(ctx context.Context, messages []Message) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for _, m := range messages {
		b.queue.PutRaw(m.Body)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
