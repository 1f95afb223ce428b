package wire

import (
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// clock is the real clock, which a test can move forward. Requests take real time, and no
// test waits for a visibility timeout.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// world is a fake AWS with its models.
type world struct {
	*fakeaws.Server
	clock  *clock
	broker *memqueue.Broker
	blobs  *memblob.Store
}

func start(t *testing.T) world {
	t.Helper()
	c := &clock{}
	w := world{
		clock:  c,
		broker: memqueue.New(memqueue.Options{Now: c.Now, Seed: 1}),
		blobs:  memblob.New(memblob.Options{Now: c.Now, Seed: 1}),
	}
	w.Server = fakeaws.Start(t, fakeaws.Options{Broker: w.broker, Blobs: w.blobs})
	return w
}
