package effect

import (
	"context"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

const (
	// maxQueuedEvents is how many Events may wait, and eventWorkers how many are published at a
	// time.
	maxQueuedEvents = 4096
	eventWorkers    = 8
	// reportTimeout is how long publishing one Event may take.
	reportTimeout = 10 * time.Second
)

// EventQueue publishes Kubernetes Events asynchronously. When the queue is full, new Events are
// dropped.
type EventQueue struct {
	client cluster.Client

	mu      sync.Mutex
	queue   []cluster.Event
	workers int
}

// NewEventQueue returns an empty queue.
func NewEventQueue(client cluster.Client) *EventQueue { return &EventQueue{client: client} }

// Enqueue adds an Event and returns at once.
func (t *EventQueue) Enqueue(ctx context.Context, e cluster.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) >= maxQueuedEvents {
		return
	}
	t.queue = append(t.queue, e)
	if t.workers < eventWorkers {
		t.workers++
		go t.publishQueued(context.WithoutCancel(ctx))
	}
}

// publishQueued publishes until the queue is empty.
func (t *EventQueue) publishQueued(ctx context.Context) {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			t.workers--
			t.mu.Unlock()
			return
		}
		e := t.queue[0]
		t.queue = t.queue[1:]
		t.mu.Unlock()
		publishEvent(ctx, t.client, e)
	}
}

// publishEvent publishes one Event. Errors are ignored, because nothing depends on Events.
func publishEvent(ctx context.Context, client cluster.Client, e cluster.Event) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	_ = client.Report(ctx, e)
}
