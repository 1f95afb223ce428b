// Package batch merges the calls of several handlers to EC2 into one, like Karpenter's batchers.
// Unlike shared/queue/batcher, which delays no single caller, it waits for other items, because EC2's
// request rate is scarcer than the time of a launch.
//   - Each caller gets the answer for its own item, and a bad item fails alone.
//   - No item waits longer than MaxWait for others.
//   - A caller whose context ends does not cancel the call of the others.
package batch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The delays and the size of Karpenter's batches of describe and terminate calls
// (Karpenter's AWS provider: pkg/batcher).
const (
	// IdleTimeout is how long a batch waits for another item.
	IdleTimeout = 100 * time.Millisecond
	// MaxWait is the maximum delay of the first item.
	MaxWait = time.Second
	// MaxItems is the maximum number of ids in one call to EC2.
	MaxItems = 1000
)

// Batcher batches items by bucket: one call takes all items of a bucket.
type Batcher[V any] struct {
	// Call makes one call for all items of a bucket, which are sorted and unique. It
	// returns values by item; a missing item has the zero value.
	Call func(ctx context.Context, bucket string, items []string) (map[string]V, error)
	// Timeout limits one call. The contexts of the callers limit only their own waiting.
	Timeout time.Duration

	mu   sync.Mutex
	open map[string]*window[V]
}

// window is a batch that accepts items.
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

// Submit adds an item to the bucket's batch and waits for its answer. The error is
// fault.Retry if the context ends first.
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
		// All callers share the call, so the first caller must not cancel it.
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

// closeWindow removes the window, makes its call and sets the answers. A timer that fires
// while it is reset calls it twice; the second call does nothing.
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

// callItems makes one call for all items. If EC2 rejects it, callItems splits the items in halves
// until the bad item is alone: a bad item among a thousand costs twenty calls.
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
