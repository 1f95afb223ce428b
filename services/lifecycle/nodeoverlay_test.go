package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// The plan's results are written on NodeOverlays. One that is deleted or cannot be written stops
// neither the others nor the launches.
func TestNodeOverlayStatus(t *testing.T) {
	s := newTestCluster(t)
	for _, name := range []string{"bad", "fine"} {
		s.SeedObjects(&karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	stored := func(name string) *karpenter.NodeOverlay {
		o, err := cluster.Get[*karpenter.NodeOverlay](t.Context(), s.Server, cluster.NodeOverlays, cluster.Key{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	plan := func() {
		held := s.startBatch()
		s.handleMessage(s.planMadeMessage(held, planning.Plan{
			Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, OverlayStatuses: []planning.OverlayStatus{
				{Name: "gone"},
				{Name: "bad", Generation: stored("bad").Generation, Reason: instancetypes.OverlayInvalid, Message: "capacity: cpu is the instance type's own"},
				{Name: "fine", Generation: stored("fine").Generation},
			},
		}), "")
	}
	plan()
	valid, _ := stored("bad").Status.Conditions.Get(karpenter.ConditionTypeValidationSucceeded)
	if valid.Status != metav1.ConditionFalse || valid.Reason != "RuntimeValidation" || stored("bad").Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("the error is not in the status: %+v", valid)
	}
	if !stored("fine").Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("the overlay is not Ready: %+v", stored("fine").Status)
	}
	quiet := stored("fine").ResourceVersion
	s.now = s.now.Add(time.Minute)
	plan()
	if stored("fine").ResourceVersion != quiet {
		t.Error("an unchanged status was written")
	}
}
