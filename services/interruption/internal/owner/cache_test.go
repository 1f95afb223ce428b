package owner

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

func TestCacheEvictsOldest(t *testing.T) {
	var b cache
	for n := range CacheSize {
		b.store(strconv.Itoa(n), &entry{ownership: Foreign})
		b.store(strconv.Itoa(n), &entry{ownership: Owned})
	}
	for n := range 3 {
		b.store(fmt.Sprint("new", n), &entry{ownership: Foreign})
	}
	for id, want := range map[string]Ownership{"0": Unknown, "1": Unknown, "2": Unknown, "3": Owned, "new0": Foreign, "new2": Foreign, "never": Unknown} {
		got := []*entry{{}}
		if b.lookUp([]string{id}, got, noon); want == Unknown && got[0] != nil || want != Unknown && (got[0] == nil || got[0].ownership != want) {
			t.Errorf("%s: got %v", id, got[0])
		}
	}
	// The second time around, the new ones are the oldest.
	for n := range CacheSize {
		b.store(fmt.Sprint("newer", n), &entry{ownership: Foreign})
	}
	if len(b.entries) != CacheSize || len(b.order) != CacheSize {
		t.Fatalf("the cache has %d entries and %d ids", len(b.entries), len(b.order))
	}
}

func TestHasClusterTags(t *testing.T) {
	for _, tt := range []struct {
		name string
		tags map[string]string
		want bool
	}{
		{"owned", map[string]string{"kubernetes.io/cluster/web": "owned", "karpenter.sh/nodepool": "default"}, true},
		{"another cluster", map[string]string{"kubernetes.io/cluster/db": "owned", "karpenter.sh/nodepool": "default"}, false},
		{"of a NodeClaim without a NodePool", map[string]string{"kubernetes.io/cluster/web": "owned", "karpenter.sh/nodepool": ""}, true},
		{"a managed node group", map[string]string{"kubernetes.io/cluster/web": "owned"}, false},
		{"shared", map[string]string{"kubernetes.io/cluster/web": "shared", "karpenter.sh/nodepool": "default"}, false},
		{"no tags", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := hasClusterTags(&cloud.Instance{Tags: tt.tags}, "kubernetes.io/cluster/web"); got != tt.want {
				t.Fatalf("got %v", got)
			}
		})
	}
}
