package cache

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// fakeGroups has the groups of each selector, by its id.
type fakeGroups struct {
	cloud.Network
	groups map[string][]cloud.SecurityGroup
	calls  int
	err    error
}

func (f *fakeGroups) DescribeSecurityGroups(_ context.Context, selectors []cloud.Selector) ([]cloud.SecurityGroup, error) {
	f.calls++
	return f.groups[selectors[0].ID], f.err
}

func TestSecurityGroupCache(t *testing.T) {
	for _, tt := range []struct {
		name       string
		ttl, after time.Duration
		id, then   string
		err        error
		calls      int
	}{
		{name: "for the interval", ttl: 5 * time.Minute, after: 5*time.Minute - 1, id: "sg-1", then: "sg-1", calls: 1},
		{name: "after the interval", ttl: 5 * time.Minute, after: 5 * time.Minute, id: "sg-1", then: "sg-1", calls: 2},
		{name: "default", ttl: time.Minute, id: "sg-1", then: "sg-1", calls: 2},
		{name: "other terms", ttl: 5 * time.Minute, id: "sg-1", then: "sg-2", calls: 2},
		{name: "no group", ttl: 5 * time.Minute, id: "sg-3", then: "sg-3", calls: 2},
		{name: "an error", ttl: 5 * time.Minute, id: "sg-1", then: "sg-1", err: fault.F("reading", fault.Throttled, "no"), calls: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			f := &fakeGroups{groups: map[string][]cloud.SecurityGroup{"sg-1": {{ID: "sg-1", Name: "one"}}, "sg-2": {{ID: "sg-2"}}}, err: tt.err}
			n := CacheSecurityGroups(f, tt.ttl, func() time.Time { return now })
			for _, id := range []string{tt.id, tt.then} {
				got, err := n.DescribeSecurityGroups(t.Context(), []cloud.Selector{{ID: id}})
				if diff := cmp.Diff(f.groups[id], got); diff != "" || !errors.Is(err, tt.err) {
					t.Errorf("%v%s", err, diff)
				}
				now = now.Add(tt.after)
			}
			if f.calls != tt.calls {
				t.Errorf("%d calls, want %d", f.calls, tt.calls)
			}
		})
	}
}
