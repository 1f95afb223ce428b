package owner

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

func TestBookForgetsTheOldest(t *testing.T) {
	var b Book
	for n := range Size {
		b.Strange(strconv.Itoa(n))
		b.Strange(strconv.Itoa(n))
	}
	for n := range 3 {
		b.Strange(fmt.Sprint("new", n))
	}
	for id, want := range map[string]bool{"0": false, "2": false, "3": true, "new0": true, "new2": true, "never": false} {
		if b.Foreign(id) != want {
			t.Errorf("%s: remembered %v", id, !want)
		}
	}
	if len(b.foreign) != Size || len(b.line) != Size {
		t.Fatalf("it holds %d ids in a line of %d", len(b.foreign), len(b.line))
	}
}

func TestB142Owned(t *testing.T) {
	for _, tt := range []struct {
		name string
		tags map[string]string
		want bool
	}{
		{"ours", map[string]string{"kubernetes.io/cluster/web": "owned", "karpenter.sh/nodepool": "default"}, true},
		{"of another cluster", map[string]string{"kubernetes.io/cluster/db": "owned", "karpenter.sh/nodepool": "default"}, false},
		{"of a managed node group", map[string]string{"kubernetes.io/cluster/web": "owned"}, false},
		{"shared", map[string]string{"kubernetes.io/cluster/web": "shared", "karpenter.sh/nodepool": "default"}, false},
		{"bare", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Owned(cloud.Instance{Tags: tt.tags}, "web"); got != tt.want {
				t.Fatalf("got %v", got)
			}
		})
	}
}
