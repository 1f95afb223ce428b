package watcher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/event"
)

// countingStore counts reads.
type countingStore struct {
	*memblob.Store
	reads int
}

func (c *countingStore) Get(ctx context.Context, key string) ([]byte, error) {
	c.reads++
	return c.Store.Get(ctx, key)
}

// In an idle minute of 120 steps the watcher renews its Leases and sometimes reads the outbox and
// the pointer to the catalogue; it makes no other calls.
func TestIdleStepsMakeFewCalls(t *testing.T) {
	s := newHarness(t)
	blobs := &countingStore{Store: s.blobs}
	s.svc = watcher.New(watcher.Config{
		Client: s.ClientFor("pod-1"), Cache: s.cache, Blobs: blobs, Planner: &s.planner, Disruption: &s.disruption, Catalog: &s.catalog,
		Cluster: event.Cluster{Name: "prod", UID: "uid"}, Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1",
		Now: func() time.Time { return s.now },
	})
	s.advance(10 * time.Second)
	before := s.Calls()
	blobs.reads = 0
	s.advance(time.Minute)
	called := map[string]int{}
	for what, n := range s.Calls() {
		if n -= before[what]; n > 0 && !strings.Contains(strings.ToLower(what), "lease") {
			called[what] = n
		}
	}
	if diff := cmp.Diff(map[string]int{"pod-1 get ConfigMap": 4}, called); diff != "" {
		t.Errorf("calls in an idle minute (-want +got):\n%s", diff)
	}
	if blobs.reads != 4 {
		t.Errorf("%d reads of blobs in an idle minute, want 4", blobs.reads)
	}
}
