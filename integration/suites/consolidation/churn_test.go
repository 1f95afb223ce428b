package consolidation

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// TestThresholdsLimitEvictionsOfADay replays one day of a busy cluster three times with the same pods:
// without consolidation, with upstream's consolidation, and with a NodePool that limits
// it. The limits must avoid most of the evictions, keep most of the saving, and hold at
// every moment.
func TestThresholdsLimitEvictionsOfADay(t *testing.T) {
	const cooldown = time.Hour
	script := write(rand(7))
	never := replay(t, script, calm())
	free := replay(t, script, pool())
	held := replay(t, script, pool(
		policy.MinSaving, "0.05", policy.MinSavingPercent, "10%", policy.Payback, "4h", policy.EvictionCost, "0.01",
		policy.Cooldown, cooldown.String(), policy.EvictionsPerHour, "20%",
	))
	for i, day := range []*day{never, free, held} {
		t.Logf("%-21s $%.2f, %d evictions by %d commands, %d nodes launched; %d pods created",
			[]string{"without consolidation", "without thresholds", "with thresholds"}[i], day.dollars, len(day.moves), day.commands, day.launched, day.born)
	}
	t.Logf("thresholds: %.0f%% of the evictions are avoided, and %.0f%% of the saving is kept",
		100*(1-float64(len(held.moves))/float64(len(free.moves))), 100*(never.dollars-held.dollars)/(never.dollars-free.dollars))
	if len(never.moves) > 0 || free.dollars >= never.dollars {
		t.Errorf("consolidation saves nothing, or the day without consolidation has evictions")
	}
	if 2*len(held.moves) > len(free.moves) {
		t.Errorf("%d evictions with thresholds, %d without", len(held.moves), len(free.moves))
	}
	if held.dollars <= free.dollars || never.dollars-held.dollars < (never.dollars-free.dollars)/2 {
		t.Errorf("$%.2f with thresholds, $%.2f without, $%.2f without consolidation", held.dollars, free.dollars, never.dollars)
	}
	if broken := free.beyond(0.2, cooldown); broken == "" {
		t.Error("the limits are respected without thresholds too, so the day does not test them")
	}
	if broken := held.beyond(0.2, cooldown); broken != "" {
		t.Error(broken)
	}
}
