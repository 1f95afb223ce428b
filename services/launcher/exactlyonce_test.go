package launcher_test

import (
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher/launchertest"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

func TestExactlyOnce(t *testing.T) {
	launchertest.Run(t, func(*testing.T) launchertest.Environment {
		var mu sync.Mutex
		now := noon
		clock := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
		model := memcloud.New(memcloud.Options{Now: clock, Seed: 1})
		return launchertest.Environment{
			EC2: model, Model: model, World: model.Furnish("prod"), Now: clock,
			AdvanceClock: func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock(); model.Advance() },
		}
	})
}
