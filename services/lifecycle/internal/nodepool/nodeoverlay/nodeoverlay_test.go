package nodeoverlay_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/nodeoverlay"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

func TestOverlayConditions(t *testing.T) {
	noon := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	conflict := planning.OverlayStatus{Name: "o", Generation: 2, Reason: instancetypes.OverlayConflict, Message: "another overlay has the same weight"}
	fine := planning.OverlayStatus{Name: "o", Generation: 2}
	o := &karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "o", Generation: 2}}
	for _, c := range []struct {
		name   string
		status planning.OverlayStatus
		known  bool
		want   []string
	}{
		{"of an older generation", planning.OverlayStatus{Name: "o", Generation: 1}, false, nil},
		{"contradicted", conflict, true, []string{"ValidationSucceeded=False Conflict: another overlay has the same weight", "Ready=False UnhealthyDependents: ValidationSucceeded=False"}},
		{"no longer in conflict", fine, true, []string{"ValidationSucceeded=True ValidationSucceeded: ", "Ready=True Ready: "}},
	} {
		got, known := nodeoverlay.ComputeStatus(o, c.status, noon)
		var reported []string
		for _, condition := range got.Conditions {
			reported = append(reported, condition.Type+"="+string(condition.Status)+" "+condition.Reason+": "+condition.Message)
			if condition.ObservedGeneration != 2 {
				t.Errorf("%s: %s has the observed generation %d", c.name, condition.Type, condition.ObservedGeneration)
			}
		}
		if diff := cmp.Diff(c.want, reported); known != c.known || diff != "" {
			t.Errorf("%s: known %t (-want +got):\n%s", c.name, known, diff)
		}
		o.Status = got
	}
}
