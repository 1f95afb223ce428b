package cli

import (
	"testing"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A node that is rebooted is not removed.
func TestWhyANodeIsRebooted(t *testing.T) {
	snapshot := planning.Snapshot{Nodes: []planning.Node{{Name: "a"}}}
	for _, tt := range []struct {
		reboot bool
		want   string
	}{{true, "node a would be rebooted by Repair"}, {false, "node a would be removed by Repair, with 0 others"}} {
		got, err := explainNode(snapshot, disruption.Findings{Commands: []disruption.Command{{Method: disruption.Repair, Nodes: []int{0}, Reboot: tt.reboot}}}, "a")
		if err != nil || got.decision() != tt.want || got.IsRemoved == tt.reboot {
			t.Errorf("%q, %+v, %v", got.decision(), got, err)
		}
	}
}
