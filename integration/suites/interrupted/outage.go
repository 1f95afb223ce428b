package interrupted

import (
	"context"
	"fmt"
	"time"
)

// Outage is how one side came back.
type Outage struct {
	Side string `json:"side"`
	// Cut is what did not answer: "queue" or "api".
	Cut    string  `json:"cut"`
	ForS   float64 `json:"forS"`
	AfterS float64 `json:"afterS"`
}

const (
	// calm is how long everything works before the cut.
	calm = 2 * time.Second
	// pace is between two messages, all the time.
	pace = 100 * time.Millisecond
	// patience is how long a side may take to come back.
	patience = 2 * time.Minute
)

// Recover cuts one side off for a while, in real time, while messages keep coming,
// and measures from the end of the cut to the first message that is dealt with.
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
		return fail(fmt.Errorf("it dealt with nothing in %s of calm", calm))
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

// trickle puts one message after the other into the queue.
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
