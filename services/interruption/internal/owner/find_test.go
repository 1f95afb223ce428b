package owner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fakeEC2 returns the instances whose ids begin with "owned", "other", "bare", "ended" or
// "untagged", another one that no call asks for, and with allOwned all instances, as owned ones.
type fakeEC2 struct {
	mu      sync.Mutex
	calls   []int
	now     time.Time
	latency time.Duration
	state   cloud.State
	throttled,
	allOwned bool
}

func (a *fakeEC2) DescribeInstances(ctx context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
	a.mu.Lock()
	a.calls = append(a.calls, len(f.IDs))
	a.mu.Unlock()
	select {
	case <-time.After(a.latency):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.throttled {
		return nil, fault.F("describing", fault.Throttled, "slow down")
	}
	out := []cloud.Instance{{ID: "another", State: a.state}}
	for _, id := range f.IDs {
		i := cloud.Instance{ID: id, Type: "m6i.large", Zone: "us-west-2a", CapacityType: "spot", State: a.state}
		switch {
		case a.allOwned || strings.HasPrefix(id, "owned"):
			i.Tags = map[string]string{karpenter.ClusterTagPrefix + "web": "owned", karpenter.NodePoolTagKey: "default"}
		case strings.HasPrefix(id, "other"):
			i.Tags = map[string]string{"Name": "db"}
		case strings.HasPrefix(id, "ended"):
			i.State, i.Tags = cloud.Terminated, map[string]string{"Name": "db"}
		case strings.HasPrefix(id, "bare"):
			i.State = cloud.Terminated
		case strings.HasPrefix(id, "untagged"):
		default:
			continue
		}
		out = append(out, i)
	}
	return out, nil
}

func (a *fakeEC2) newFinder() *Finder {
	a.now = noon
	return &Finder{EC2: a, Cluster: "web", Now: func() time.Time { return a.now }}
}

// findOwners finds the owners for an event of the age.
func findOwners(t *testing.T, a *fakeEC2, f *Finder, age time.Duration, fresh bool, ids ...string) Owners {
	t.Helper()
	found, err := f.FindOwners(t.Context(), ids, a.now.Add(-age), fresh)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFindOwners(t *testing.T) {
	a := &fakeEC2{state: cloud.Running}
	found := findOwners(t, a, a.newFinder(), 0, false, "owned1", "other1", "young1", "bare1", "ended1", "untagged1", "owned2")
	if len(found.Owned) != 2 || found.Owned[1].ID != "owned2" || found.Owned[1].Offering.InstanceType != "m6i.large" || !slices.Equal(found.NotFound, []string{"young1", "bare1"}) || !slices.Equal(found.Untagged, []string{"untagged1"}) {
		t.Fatalf("%+v", found)
	}
}

func TestOwnersAreCached(t *testing.T) {
	for _, c := range []struct {
		name, id string
		age      time.Duration
		fresh    bool
		calls    int // of three lookups
	}{
		{"owned", "owned-1", 0, false, 1},
		{"owned, with the current state", "owned-1", 0, true, 3},
		{"foreign", "other", 0, false, 1},
		{"foreign, with the current state", "other", 0, true, 1},
		{"recently untagged", "untagged", ConsistencyDelay - 1, false, 3},
		{"untagged", "untagged", ConsistencyDelay, true, 1},
		{"recently not found", "unseen", ConsistencyDelay - 1, false, 3},
		{"not found", "unseen", ConsistencyDelay, false, 1},
		{"not found, with the current state", "unseen", ConsistencyDelay, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &fakeEC2{state: cloud.Running}
			f := a.newFinder()
			first := findOwners(t, a, f, c.age, c.fresh, c.id)
			for range 2 {
				again := findOwners(t, a, f, c.age, c.fresh, c.id)
				if fmt.Sprint(again) != fmt.Sprint(first) {
					t.Errorf("%+v, then %+v", first, again)
				}
			}
			if len(a.calls) != c.calls {
				t.Errorf("%d calls, want %d", len(a.calls), c.calls)
			}
		})
	}
}

// An instance that was not found is looked up again after a while: a forged event may have
// named its ID before it was launched.
func TestNotFoundExpires(t *testing.T) {
	a := &fakeEC2{state: cloud.Running}
	f := a.newFinder()
	findOwners(t, a, f, ConsistencyDelay, false, "late")
	a.allOwned = true
	a.now = a.now.Add(notFoundTTL - 1)
	if found := findOwners(t, a, f, ConsistencyDelay, false, "late"); len(found.NotFound) != 1 || len(a.calls) != 1 {
		t.Fatalf("%+v after %d calls", found, len(a.calls))
	}
	a.now = a.now.Add(1)
	if found := findOwners(t, a, f, ConsistencyDelay, false, "late"); len(found.Owned) != 1 {
		t.Fatalf("%+v", found)
	}
}

// An untagged instance is looked up again: at once for a recent event. A foreign one is
// looked up again after foreignTTL.
func TestLateTags(t *testing.T) {
	for _, c := range []struct {
		name, id string
		// age is the age of the first event, and wait the time until the second one.
		age, wait time.Duration
	}{
		{"running without tags", "untagged", 0, 0},
		{"running without tags, first with an older event", "untagged", ConsistencyDelay, time.Second},
		{"not found, first with an older event", "unseen", ConsistencyDelay, time.Second},
		{"foreign tags", "other", 0, foreignTTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &fakeEC2{state: cloud.Running}
			f := a.newFinder()
			if found := findOwners(t, a, f, c.age, false, c.id); len(found.Owned) != 0 {
				t.Fatalf("%+v", found)
			}
			a.allOwned, a.now = true, a.now.Add(c.wait)
			if found := findOwners(t, a, f, 0, false, c.id); len(found.Owned) != 1 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// Handlers share calls: 4,000 new instances a second need at most 20 calls a second.
func TestHandlersShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4000
		a := &fakeEC2{state: cloud.Running, latency: parallelCalls * time.Second / 20}
		f := a.newFinder()
		began := time.Now()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				found, err := f.FindOwners(t.Context(), []string{fmt.Sprint("owned", i)}, noon, false)
				if err != nil || len(found.Owned) != 1 {
					t.Errorf("%+v: %v", found, err)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		t.Logf("%d calls in %s", len(a.calls), took)
		if len(a.calls) > n/idsPerCall+parallelCalls || took > 1200*time.Millisecond || slices.Max(a.calls) > idsPerCall {
			t.Errorf("%d calls in %s, of at most %d", len(a.calls), took, slices.Max(a.calls))
		}
	})
}

func TestManyInstancesOfOneEvent(t *testing.T) {
	a := &fakeEC2{state: cloud.Running}
	var ids []string
	for i := range 2*idsPerCall + 1 {
		ids = append(ids, fmt.Sprint("owned", i))
	}
	if found := findOwners(t, a, a.newFinder(), 0, false, ids...); len(found.Owned) != len(ids) || !slices.Equal(a.calls, []int{idsPerCall, idsPerCall, 1}) {
		t.Fatalf("%d owned instances with calls of %v", len(found.Owned), a.calls)
	}
}

func TestFailuresAreNotCached(t *testing.T) {
	a := &fakeEC2{state: cloud.Running, throttled: true}
	f := a.newFinder()
	if _, err := f.FindOwners(t.Context(), []string{"owned"}, noon, false); !fault.Is(err, fault.Throttled) {
		t.Fatal(err)
	}
	a.throttled = false
	if found := findOwners(t, a, f, ConsistencyDelay, false, "owned"); len(found.Owned) != 1 {
		t.Fatalf("%+v", found)
	}
}

func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeEC2{latency: time.Hour}
		f := a.newFinder()
		f.Limit = 2 * time.Second
		began := time.Now()
		if _, err := f.FindOwners(t.Context(), []string{"owned"}, noon, false); !fault.Is(err, fault.Retry) || time.Since(began) != f.Limit {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
	})
}
