package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// The overdue counter of a NodePool starts at zero before the first overdue drain, so that the
// alarm detects the increase.
func TestOverdueStartsAtZero(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	var recorded []string
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
		c.Metrics = func(m metric.Metric, value float64, labels ...string) {
			if m.Name == metric.DrainsOverdue.Name {
				recorded = append(recorded, fmt.Sprint(value, labels))
			}
		}
	})
	s.advance(time.Second)
	if !slices.Equal(slices.Compact(recorded), []string{"0 [default]"}) {
		t.Errorf("got metrics %v", recorded)
	}
}
