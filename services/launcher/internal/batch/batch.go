// Package batch gathers what several handlers ask of EC2 at about the same time
// into one call, as upstream's batchers do.
//
// The invariants: everybody gets the answer about his own item and no other;
// one bad item fails alone; nobody waits longer than Max for company; and that
// one caller gives up does not take the call from the others.
package batch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The times and the size of upstream's batches of describe and terminate calls.
const (
	// IdleTimeout is how long a batch waits for another item.
	IdleTimeout = 100 * time.Millisecond
	// MaxWait is how long the first item waits at most.
	MaxWait = time.Second
	// MaxItems is the most ids that one of EC2's calls takes.
	MaxItems = 1000
)

// Batcher gathers items by bucket: what is in one bucket can be asked together.
type Batcher[V any] struct {
	// Call makes one call for all items of a bucket, which are sorted and differ. It
	// answers by item; one that is missing has the zero value.
	Call func(ctx context.Context, bucket string, items []string) (map[string]V, error)
	// Timeout bounds one call; the callers' own contexts end their waiting alone.
	Timeout time.Duration

	mu   sync.Mutex
	open map[string]*window[V]
}

// window is a batch that still takes items.
type window[V any] struct {
	items   []string
	began   time.Time
	timer   *time.Timer
	done    chan struct{}
	answers map[string]answer[V]
}

type answer[V any] struct {
	value V
	err   error
}

// Submit joins the bucket's batch and waits for the answer about the item.
func (b *Batcher[V]) Submit(ctx context.Context, bucket, item string) (V, error) {
	var none V
	if err := ctx.Err(); err != nil {
		return none, fault.E("waiting for a batch", fault.Retry, err)
	}
	w := b.joinWindow(ctx, bucket, item)
	select {
	case <-w.done:
		return w.answers[item].value, w.answers[item].err
	case <-ctx.Done():
		return none, fault.E("waiting for a batch", fault.Retry, ctx.Err())
	}
}

func (b *Batcher[V]) joinWindow(ctx context.Context, bucket, item string) *window[V] {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.open[bucket]
	if w == nil {
		w = &window[V]{began: time.Now(), done: make(chan struct{})}
		if b.open == nil {
			b.open = map[string]*window[V]{}
		}
		b.open[bucket] = w
		// The call is everybody's, and whoever began it may leave.
		shared := context.WithoutCancel(ctx)
		w.timer = time.AfterFunc(IdleTimeout, func() { b.closeWindow(shared, bucket, w) })
	} else {
		w.timer.Reset(max(0, min(IdleTimeout, MaxWait-time.Since(w.began))))
	}
	if !slices.Contains(w.items, item) {
		w.items = append(w.items, item)
	}
	if len(w.items) == MaxItems {
		delete(b.open, bucket)
		w.timer.Reset(0)
	}
	return w
}

// closeWindow stops the window from taking items, makes the call and answers. It may be
// called twice, by a timer that fired as it was set anew.
func (b *Batcher[V]) closeWindow(ctx context.Context, bucket string, w *window[V]) {
	b.mu.Lock()
	if w.answers != nil {
		b.mu.Unlock()
		return
	}
	w.answers = map[string]answer[V]{}
	if b.open[bucket] == w {
		delete(b.open, bucket)
	}
	b.mu.Unlock()
	if b.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.Timeout)
		defer cancel()
	}
	slices.Sort(w.items)
	b.callItems(ctx, bucket, w.items, w.answers)
	close(w.done)
}

// callItems asks for all of them. Where EC2 refuses it asks for both halves,
// until the bad item is alone: a thousand items and a bad one cost twenty calls.
func (b *Batcher[V]) callItems(ctx context.Context, bucket string, items []string, answers map[string]answer[V]) {
	values, err := b.Call(ctx, bucket, items)
	if len(items) > 1 && fault.Is(err, fault.Denied, fault.Invalid, fault.Rejected, fault.Missing, fault.Conflict) {
		half := len(items) / 2
		b.callItems(ctx, bucket, items[:half], answers)
		b.callItems(ctx, bucket, items[half:], answers)
		return
	}
	for _, item := range items {
		answers[item] = answer[V]{values[item], err}
	}
}
