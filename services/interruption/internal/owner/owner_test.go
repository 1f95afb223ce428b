package owner

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

func TestBookForgetsTheOldest(t *testing.T) {
	var b book
	for n := range Size {
		b.note(strconv.Itoa(n), &entry{answer: Strange})
		b.note(strconv.Itoa(n), &entry{answer: Ours})
	}
	for n := range 3 {
		b.note(fmt.Sprint("new", n), &entry{answer: Strange})
	}
	for id, want := range map[string]Answer{"0": Unknown, "2": Unknown, "3": Ours, "new0": Strange, "new2": Strange, "never": Unknown} {
		got := []*entry{{}}
		if b.look([]string{id}, got, noon); want == Unknown && got[0] != nil || want != Unknown && (got[0] == nil || got[0].answer != want) {
			t.Errorf("%s: remembered %v", id, got[0])
		}
	}
	if len(b.entries) != Size || len(b.line) != Size {
		t.Fatalf("it holds %d ids in a line of %d", len(b.entries), len(b.line))
	}
}

func TestOwned(t *testing.T) {
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
			if got := owned(&cloud.Instance{Tags: tt.tags}, "kubernetes.io/cluster/web"); got != tt.want {
				t.Fatalf("got %v", got)
			}
		})
	}
}
