package ratelimit

import (
	"context"
	"slices"
	"sync"
)

// fairMutex is a mutex for which clusters take turns: a cluster with a thousand waiting launches
// does not delay the first launch of another.
type fairMutex struct {
	mu     sync.Mutex
	locked bool
	// turns has the waiting clusters, the next one first. waiting has the callers of each
	// in their order.
	turns   []string
	waiting map[string][]*caller
}

type caller struct {
	granted chan struct{}
}

// acquire waits for the mutex. After success the caller must call release.
func (g *fairMutex) acquire(ctx context.Context, cluster string) error {
	g.mu.Lock()
	if !g.locked {
		g.locked = true
		g.mu.Unlock()
		return nil
	}
	c := &caller{granted: make(chan struct{})}
	if g.waiting == nil {
		g.waiting = map[string][]*caller{}
	}
	if len(g.waiting[cluster]) == 0 {
		g.turns = append(g.turns, cluster)
	}
	g.waiting[cluster] = append(g.waiting[cluster], c)
	g.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
		return g.cancelWait(ctx, cluster, c)
	}
}

// cancelWait removes a caller from the queue. If the caller was granted the mutex in the
// meantime, cancelWait releases it.
func (g *fairMutex) cancelWait(ctx context.Context, cluster string, c *caller) error {
	g.mu.Lock()
	i := slices.Index(g.waiting[cluster], c)
	if i >= 0 {
		g.waiting[cluster] = slices.Delete(g.waiting[cluster], i, i+1)
		if len(g.waiting[cluster]) == 0 {
			g.turns = slices.DeleteFunc(g.turns, func(t string) bool { return t == cluster })
		}
	}
	g.mu.Unlock()
	if i < 0 {
		g.release()
	}
	return ctx.Err()
}

// release grants the mutex to the first caller of the next cluster.
func (g *fairMutex) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.turns) == 0 {
		g.locked = false
		return
	}
	cluster := g.turns[0]
	g.turns = g.turns[1:]
	line := g.waiting[cluster]
	if g.waiting[cluster] = line[1:]; len(line) > 1 {
		g.turns = append(g.turns, cluster)
	}
	close(line[0].granted)
}
