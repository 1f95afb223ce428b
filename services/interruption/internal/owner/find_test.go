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

// account is EC2: ids that begin with "ours", "other" and "bare" are there, and
// all others are not shown.
type account struct {
	mu    sync.Mutex
	calls []int
	now   time.Time
	trip  time.Duration
	state cloud.State
	broken,
	shows bool // everything is ours
}

func (a *account) DescribeInstances(ctx context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
	a.mu.Lock()
	a.calls = append(a.calls, len(f.IDs))
	a.mu.Unlock()
	select {
	case <-time.After(a.trip):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.broken {
		return nil, fault.F("describing", fault.Throttled, "slow down")
	}
	var out []cloud.Instance
	for _, id := range f.IDs {
		i := cloud.Instance{ID: id, Type: "m6i.large", Zone: "us-west-2a", CapacityType: "spot", State: a.state}
		switch {
		case a.shows || strings.HasPrefix(id, "ours"):
			i.Tags = map[string]string{karpenter.ClusterTagPrefix + "web": "owned", karpenter.NodePoolTagKey: "default"}
		case strings.HasPrefix(id, "other"):
			i.Tags = map[string]string{"Name": "db"}
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

func (a *account) finder() *Finder {
	a.now = noon
	return &Finder{EC2: a, Cluster: "web", Now: func() time.Time { return a.now }}
}

// find asks once, of an event of that age.
func find(t *testing.T, a *account, f *Finder, age time.Duration, fresh bool, ids ...string) Found {
	t.Helper()
	found, err := f.Find(t.Context(), ids, a.now.Add(-age), fresh)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFindSortsByOwner(t *testing.T) {
	a := &account{state: cloud.Running}
	found := find(t, a, a.finder(), 0, false, "ours1", "other1", "young1", "bare1", "ours2")
	if len(found.Ours) != 2 || found.Ours[1].ID != "ours2" || found.Ours[1].Offering.InstanceType != "m6i.large" || !slices.Equal(found.Unseen, []string{"young1", "bare1"}) {
		t.Fatalf("%+v", found)
	}
}

func TestKnownOwnersRepeatForFree(t *testing.T) {
	for _, c := range []struct {
		name, id string
		age      time.Duration
		fresh    bool
		calls    int // in three times
	}{
		{"ours", "ours", 0, false, 1},
		{"an end of ours, of which the state counts", "ours", 0, true, 3},
		{"a stranger's", "other", 0, false, 1},
		{"an end of a stranger's", "other", 0, true, 1},
		{"too young to have tags", "untagged", Settle - 1, false, 3},
		{"never tagged", "untagged", Settle, true, 1},
		{"too young to be shown", "unseen", Settle - 1, false, 3},
		{"never shown", "unseen", Settle, false, 1},
		{"an end that was never shown", "unseen", Settle, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &account{state: cloud.Running}
			f := a.finder()
			first := find(t, a, f, c.age, c.fresh, c.id)
			for range 2 {
				again := find(t, a, f, c.age, c.fresh, c.id)
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

// What EC2 did not show is asked for again after a while, for an id that was
// unseen may have been made up before it was given.
func TestUnseenIsNotForEver(t *testing.T) {
	a := &account{state: cloud.Running}
	f := a.finder()
	find(t, a, f, Settle, false, "late")
	a.shows = true
	a.now = a.now.Add(unseenFor - 1)
	if found := find(t, a, f, Settle, false, "late"); len(found.Unseen) != 1 || len(a.calls) != 1 {
		t.Fatalf("%+v after %d calls", found, len(a.calls))
	}
	a.now = a.now.Add(1)
	if found := find(t, a, f, Settle, false, "late"); len(found.Ours) != 1 {
		t.Fatalf("%+v", found)
	}
}

// What EC2 shows without tags once is asked about again: for a young event at once, and
// somebody else's after a while.
func TestLateTags(t *testing.T) {
	for _, c := range []struct {
		name, id string
		// age is that of the first event, and wait how long after it the second is said.
		age, wait time.Duration
	}{
		{"running without tags", "untagged", 0, 0},
		{"running without tags, when an older event asked", "untagged", Settle, time.Second},
		{"not shown when an older event asked", "unseen", Settle, time.Second},
		{"with the tags of somebody else", "other", 0, strangeFor},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &account{state: cloud.Running}
			f := a.finder()
			if found := find(t, a, f, c.age, false, c.id); len(found.Ours) != 0 {
				t.Fatalf("%+v", found)
			}
			a.shows, a.now = true, a.now.Add(c.wait)
			if found := find(t, a, f, 0, false, c.id); len(found.Ours) != 1 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// messages are handled ten at a time and many tens at once, and EC2 is
// asked in few calls: 4,000 new instances a second stay below 20 calls a second
// when the calls are held to that.
func TestManyHandlersShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4000
		a := &account{state: cloud.Running, trip: lanes * time.Second / 20}
		f := a.finder()
		began := time.Now()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				found, err := f.Find(t.Context(), []string{fmt.Sprint("ours", i)}, noon, false)
				if err != nil || len(found.Ours) != 1 {
					t.Errorf("%+v: %v", found, err)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		t.Logf("%d calls in %s", len(a.calls), took)
		if len(a.calls) > n/chunk+lanes || took > 1200*time.Millisecond || slices.Max(a.calls) > chunk {
			t.Errorf("%d calls in %s, of at most %d", len(a.calls), took, slices.Max(a.calls))
		}
	})
}

func TestManyInstancesOfOneEvent(t *testing.T) {
	a := &account{state: cloud.Running}
	var ids []string
	for i := range 2*chunk + 1 {
		ids = append(ids, fmt.Sprint("ours", i))
	}
	if found := find(t, a, a.finder(), 0, false, ids...); len(found.Ours) != len(ids) || !slices.Equal(a.calls, []int{chunk, chunk, 1}) {
		t.Fatalf("%d of ours in calls of %v", len(found.Ours), a.calls)
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	a := &account{state: cloud.Running, broken: true}
	f := a.finder()
	if _, err := f.Find(t.Context(), []string{"ours"}, noon, false); !fault.Is(err, fault.Throttled) {
		t.Fatal(err)
	}
	a.broken = false
	if found := find(t, a, f, Settle, false, "ours"); len(found.Ours) != 1 {
		t.Fatalf("%+v", found)
	}
}

func TestACallHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{trip: time.Hour}
		f := a.finder()
		f.Limit = 2 * time.Second
		began := time.Now()
		if _, err := f.Find(t.Context(), []string{"ours"}, noon, false); !fault.Is(err, fault.Retry) || time.Since(began) != f.Limit {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
	})
}
