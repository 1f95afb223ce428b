package repair_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// The cases are those of Karpenter's pkg/controllers/disruption/repair_history_test.go.
func TestLimitReboots(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago := func(hours ...int) []time.Time {
		var out []time.Time
		for _, h := range hours {
			out = append(out, now.Add(-time.Duration(h)*time.Hour))
		}
		return out
	}
	for name, tt := range map[string]struct {
		action, want repair.RepairAction
		reboots      []time.Time
	}{
		"never rebooted":       {repair.Reboot, repair.Reboot, nil},
		"rebooted once":        {repair.Reboot, repair.Reboot, ago(1)},
		"rebooted twice":       {repair.Reboot, repair.Replace, ago(23, 1)},
		"the window slides":    {repair.Reboot, repair.Reboot, ago(24, 1)},
		"a replacement stays":  {repair.Replace, repair.Replace, ago(2, 1)},
		"nothing stays so too": {"", "", ago(2, 1)},
	} {
		got := repair.NodeRepair{Action: tt.action}.LimitReboots(tt.reboots, now)
		if got.Action != tt.want || got.Escalated != (tt.action != tt.want) {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
	}
}
