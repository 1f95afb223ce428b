package cluster_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

func TestChanges(t *testing.T) {
	var c cluster.Changes
	c.RecordChange(cluster.Key{Name: "before the first TakeChanges"})
	expect := func(what string, want cluster.Changed) {
		t.Helper()
		if diff := cmp.Diff(want, c.TakeChanges()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("first TakeChanges", cluster.Changed{All: true})
	expect("nothing", cluster.Changed{})
	for _, name := range []string{"b", "a", "b"} {
		c.RecordChange(cluster.Key{Name: name})
	}
	c.RecordChange(cluster.Key{Namespace: "x", Name: "a"})
	expect("three", cluster.Changed{Keys: []cluster.Key{{Name: "a"}, {Name: "b"}, {Namespace: "x", Name: "a"}}})
	expect("TakeChanges without a new change", cluster.Changed{})
	for i := range cluster.MaxNamed {
		c.RecordChange(cluster.Key{Name: strconv.Itoa(i)})
	}
	if got := c.TakeChanges(); got.All || len(got.Keys) != cluster.MaxNamed {
		t.Errorf("at the limit of keys: All %t, %d keys", got.All, len(got.Keys))
	}
	for i := range cluster.MaxNamed + 1 {
		c.RecordChange(cluster.Key{Name: strconv.Itoa(i)})
	}
	expect("beyond the limit of keys", cluster.Changed{All: true})
	expect("TakeChanges after the limit", cluster.Changed{})
}

func TestChangedEmpty(t *testing.T) {
	for _, test := range []struct {
		changed cluster.Changed
		want    bool
	}{
		{cluster.Changed{}, true}, {cluster.Changed{All: true}, false}, {cluster.Changed{Keys: []cluster.Key{{}}}, false},
	} {
		if got := test.changed.Empty(); got != test.want {
			t.Errorf("Empty of %+v = %t", test.changed, got)
		}
	}
}
