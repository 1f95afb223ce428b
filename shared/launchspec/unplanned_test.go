package launchspec_test

import (
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestClaimThatRequiresReservation checks the launch of a user-created NodeClaim that requires labels which only a
// capacity reservation sets, as Karpenter writes them into NodeClaims (Karpenter:
// pkg/controllers/provisioning/scheduling/nodeclaim.go, FinalizeScheduling).
func TestClaimThatRequiresReservation(t *testing.T) {
	for _, tt := range []struct {
		name     string
		required karpenter.NodeSelectorRequirementWithMinValues
		want     []string
	}{
		{"by id", in(karpenter.LabelCapacityReservationID, "cr-1"), []string{"cr-1"}},
		{"one of two", in(karpenter.LabelCapacityReservationID, "cr-2", "cr-none"), []string{"cr-2"}},
		{"by type", in(karpenter.LabelCapacityReservationType, "capacity-block"), []string{"cr-2"}},
		{"unknown", in(karpenter.LabelCapacityReservationID, "cr-none"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("inflate", 0, "1", "0"))
			w.reserve(
				karpenter.CapacityReservation{ID: "cr-1", InstanceType: "t4g.medium"},
				karpenter.CapacityReservation{ID: "cr-2", InstanceType: "t4g.large", ReservationType: karpenter.CapacityReservationTypeCapacityBlock},
			)
			claim := karpenter.NodeClaim{}
			claim.Name, claim.Labels = "mine", map[string]string{karpenter.NodePoolLabelKey: w.pool().Name}
			claim.Spec.NodeClassRef = w.pool().Spec.Template.Spec.NodeClassRef
			claim.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{in(karpenter.CapacityTypeLabelKey, "reserved"), tt.required}
			w.batch.Pending, w.batch.Unplanned = nil, []karpenter.NodeClaim{claim}
			built, err := launchspec.Build(w.batch, event.Ref{}, planning.Result{}, w.cat)
			if err != nil {
				t.Fatal(err)
			}
			for i, intent := range built.Intents {
				if err := launchspec.VerifyUnplanned(built.Plan.Intents[i], intent, &claim, w.batch.Snapshot, w.cat); err != nil {
					t.Error(err)
				}
			}
			var got []string
			for _, intent := range built.Intents {
				for _, template := range intent.Templates {
					got = append(got, template.Reservation.ID)
				}
			}
			if !slices.Equal(got, tt.want) || (len(built.Plan.UnlaunchableClaims) == 0) != (len(tt.want) > 0) {
				t.Errorf("got launches into %v and unlaunchable %v, want %v", got, built.Plan.UnlaunchableClaims, tt.want)
			}
		})
	}
}
