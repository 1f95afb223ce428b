package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// A notice waits neither for a reconcile nor for queued messages, and a reconcile waits for at
// most one message.
func TestConcurrentHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memcluster.New(memcluster.Options{Now: time.Now})
		newFleet(server, 1, 10)
		d := &remoteClient{
			Client: server.ClientFor("lifecycle"), latency: 100 * time.Millisecond, writes: make(chan struct{}, 1),
			tainted: map[string]time.Time{}, reportedStuck: map[string]time.Time{},
		}
		cache := server.NewCache(memcluster.CacheOptions{Trim: lifecycle.Trims()})
		cache.DeliverAll()
		service := lifecycle.New(lifecycle.Config{
			Client: d, Cache: cache, Cluster: clusterIdentity, Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Now: time.Now,
		})
		gate := host.NewMutex()
		lanes, began := service.ConcurrentHandler(gate), time.Now()
		look := gate.WrapLocked(func(context.Context) error { time.Sleep(10 * time.Second); return nil })
		facts := func() error {
			return lanes(t.Context(), newEnvelope(t, event.LaunchSettled{Intent: "other", Wanted: 1, Refusals: []event.Refusal{{Code: "UnauthorizedOperation"}}}))
		}
		notice := func() error {
			return lanes(t.Context(), newEnvelope(t, event.NodeNoticed{
				InstanceID: "i-c000", Kind: event.SpotInterruption, Noticed: began, Deadline: began.Add(2 * time.Minute),
			}))
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		ended := map[string]time.Duration{}
		begin := func(what string, act func() error) {
			all.Go(func() {
				err := act()
				mu.Lock()
				defer mu.Unlock()
				if ended[what] = time.Since(began); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
			synctest.Wait()
		}
		begin("the first reconcile", func() error { return look(t.Context()) })
		for range lifecycle.MaxInFlight - 2 {
			begin("the last message", facts)
		}
		begin("the second reconcile", func() error { return look(t.Context()) })
		begin("the notice", notice)
		all.Wait()
		if ended["the notice"] > 3*time.Second || len(d.tainted) != 1 {
			t.Errorf("the notice was handled after %s: %v", ended["the notice"], d.tainted)
		}
		if ended["the second reconcile"] > 21*time.Second || ended["the last message"] < ended["the second reconcile"] {
			t.Errorf("the second reconcile ended after %s, the last message after %s", ended["the second reconcile"], ended["the last message"])
		}
	})
}

// Only the newest of the waiting inventories is compared. It contains the information of the
// others, and comparing each would delay all other messages.
func TestOldInventoriesAreSkipped(t *testing.T) {
	s := newTestCluster(t)
	var facts []event.Envelope
	for _, age := range []time.Duration{2 * time.Minute, 0, time.Minute} {
		facts = append(facts, s.inventoryMessage(s.now.Add(-age)))
	}
	kinds, _ := s.deliverTogether(facts...)
	if diff := cmp.Diff([]fault.Kind{fault.Stale, "", fault.Stale}, kinds); diff != "" {
		t.Error(diff)
	}
}

// An inventory whose start is in the future is parked and does not make other inventories stale,
// neither waiting nor later ones.
func TestInventoryFromTheFuture(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	future, now := s.inventoryMessage(s.now.Add(24*time.Hour)), s.inventoryMessage(s.now, listedInstance("i-9", "lost", ""))
	kinds, _ := s.deliverTogether(future, now)
	if diff := cmp.Diff([]fault.Kind{fault.Poison, ""}, kinds); diff != "" {
		t.Error(diff)
	}
	kinds, _ = s.deliverTogether(s.inventoryMessage(s.now.Add(time.Second)))
	if diff := cmp.Diff([]fault.Kind{""}, kinds); diff != "" {
		t.Errorf("an inventory whose clock is slightly ahead was rejected: %s", diff)
	}
	document, err := event.DecodeBody[event.InstancesListed](s.inventoryMessage(s.now.Add(24 * time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	document.Started = s.now
	s.handleMessage(s.newMessage(document), fault.Poison)
}

func newEnvelope(t *testing.T, body event.Body) event.Envelope {
	t.Helper()
	e, err := event.Maker{Service: "test", Cluster: clusterIdentity}.New(time.Now(), body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
