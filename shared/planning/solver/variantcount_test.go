package solver

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// TestVariantsAreBounded splits a pool by three open labels, for each of which pods ask for 30 values.
func TestVariantsAreBounded(t *testing.T) {
	base, named := planning.Requirements{}, namedLabels{}
	for _, key := range []string{"team", "tier", "rack"} {
		base.Add(key, planning.NewValues(corev1.NodeSelectorOpExists))
		for i := range 30 {
			named.addLabel(key, fmt.Sprint("value-", i))
		}
	}
	w := &state{snapshot: &planning.Snapshot{TakenAt: time.Unix(0, 0)}}
	if n := len(w.listVariants(base, named)); n <= 30 || n > maxVariants {
		t.Errorf("%d variants, want at most %d, and one for each value of a label", n, maxVariants)
	}
}
