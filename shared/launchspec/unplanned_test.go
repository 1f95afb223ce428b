package launchspec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
			built := w.buildReservedClaim(t, tt.required)
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

// buildReservedClaim plans a user-created NodeClaim that requires a reservation, and verifies its launch.
func (w *world) buildReservedClaim(t *testing.T, requirements ...karpenter.NodeSelectorRequirementWithMinValues) launchspec.Built {
	t.Helper()
	claim := karpenter.NodeClaim{}
	claim.Name, claim.Labels = "mine", map[string]string{karpenter.NodePoolLabelKey: w.pool().Name}
	claim.Spec.NodeClassRef = w.pool().Spec.Template.Spec.NodeClassRef
	claim.Spec.Requirements = append(requirements, in(karpenter.CapacityTypeLabelKey, "reserved"))
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
	return built
}

// TestClaimWithManyReservations checks that a launch has at most 50 launch templates, EC2's limit: each reservation
// needs its own.
func TestClaimWithManyReservations(t *testing.T) {
	for _, tt := range []struct {
		name      string
		minValues int
		want      int
	}{
		{"any type", 0, 50},
		{"as many types as a launch may have", 50, 50},
		{"more types than a launch may have", 51, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("inflate", 0, "1", "0"))
			var all []karpenter.CapacityReservation
			for i, typ := range w.cat.Types {
				if typ.VCPU >= 2 && !typ.BareMetal && len(typ.GPUs)+len(typ.Accelerators) == 0 {
					all = append(all, karpenter.CapacityReservation{ID: fmt.Sprintf("cr-%d", i), InstanceType: typ.Name})
				}
			}
			w.reserve(all...)
			types := karpenter.NodeSelectorRequirementWithMinValues{Key: corev1.LabelInstanceTypeStable, Operator: karpenter.NodeSelectorOpExists}
			if tt.minValues > 0 {
				types.MinValues = &tt.minValues
			}
			built := w.buildReservedClaim(t, types)
			if tt.want == 0 {
				if len(built.Intents) != 0 || len(built.Plan.UnlaunchableClaims) != 1 {
					t.Errorf("%d launches, and the NodeClaims %v cannot be launched", len(built.Intents), built.Plan.UnlaunchableClaims)
				}
				return
			}
			if len(built.Intents) != 1 {
				t.Fatalf("%d launches, and the NodeClaims %v cannot be launched", len(built.Intents), built.Plan.UnlaunchableClaims)
			}
			intent := built.Intents[0]
			if len(intent.Fleet.Configs) != tt.want || len(intent.Templates) != tt.want || len(intent.Types) != tt.want || len(intent.Prices) != tt.want {
				t.Errorf("%d reservations give %d launch templates, %d of them written, with %d types and %d prices; want %d of each",
					len(all), len(intent.Fleet.Configs), len(intent.Templates), len(intent.Types), len(intent.Prices), tt.want)
			}
		})
	}
}

// TestUnplannedIntentID checks that the id of the launch derives from the name of the user-created NodeClaim, which is how the
// launcher recognises the NodeClaim, and that lifecycle refuses another id.
func TestUnplannedIntentID(t *testing.T) {
	w := newWorld(planningtest.NewPods("inflate", 0, "1", "0"))
	var claims []karpenter.NodeClaim
	for _, name := range []string{"mine", "yours"} {
		claim := karpenter.NodeClaim{}
		claim.Name, claim.Spec.NodeClassRef = name, w.pool().Spec.Template.Spec.NodeClassRef
		claims = append(claims, claim)
	}
	w.batch.Pending, w.batch.Unplanned = nil, claims
	built, err := launchspec.Build(w.batch, event.Ref{}, planning.Result{}, w.cat)
	if err != nil || len(built.Intents) != len(claims) {
		t.Fatalf("%d launches: %v", len(built.Intents), err)
	}
	for i, intent := range built.Intents {
		for _, claim := range claims {
			if got, want := launchspec.LaunchesUnplanned(intent.ID, claim.Name), claim.Name == claims[i].Name; got != want {
				t.Errorf("the launch %s of %s launches %s: %t, want %t", intent.ID, claims[i].Name, claim.Name, got, want)
			}
		}
		if err := launchspec.VerifyUnplanned(built.Plan.Intents[i], intent, &claims[i], w.batch.Snapshot, w.cat); err != nil {
			t.Error(err)
		}
		intent.ID = built.Intents[1-i].ID
		if err := launchspec.VerifyUnplanned(built.Plan.Intents[i], intent, &claims[i], w.batch.Snapshot, w.cat); err == nil || !strings.Contains(err.Error(), "does not derive") {
			t.Errorf("with the id of the other launch: %v", err)
		}
	}
	for _, id := range []string{"", "intent-1", launchspec.IntentID(event.Cluster{}, "batch", 0)} {
		if launchspec.LaunchesUnplanned(id, "mine") {
			t.Errorf("the intent %q launches a NodeClaim that a user created", id)
		}
	}
}
