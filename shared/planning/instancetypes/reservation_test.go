package instancetypes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const (
	reservedType = "t4g.medium"
	reservedZone = "ap-northeast-2a"
)

// reserving returns the default types with a reservation of five instances of the pool's type and
// zone.
func reserving(edits ...func(*planning.Snapshot, *catalog.Catalogue, *karpenter.CapacityReservation)) instancetypes.InstanceTypes {
	s, cat := planningtest.NewBatch().Snapshot, planningtest.NewCatalogue()
	s.Settings.Gates.ReservedCapacity = true
	cat.AsOf = s.TakenAt.Add(-2 * time.Minute)
	cat.Reservations = []catalog.ReservationCount{{ID: "cr-1", Count: 5}}
	r := karpenter.CapacityReservation{ID: "cr-1", InstanceType: reservedType, AvailabilityZone: reservedZone}
	for _, edit := range edits {
		edit(&s, &cat, &r)
	}
	s.NodeClasses[0].Status.CapacityReservations = []karpenter.CapacityReservation{r}
	return instancetypes.New(s, cat)
}

func reserved(stock instancetypes.InstanceTypes) []instancetypes.InstanceOffering {
	var out []instancetypes.InstanceOffering
	for _, t := range stock.ByNodeClass[planningtest.NewNodeClass().Name] {
		for _, o := range t.Offerings {
			if o.CapacityType == karpenter.CapacityTypeReserved {
				out = append(out, o)
			}
		}
	}
	return out
}

func TestReservedOffer(t *testing.T) {
	price := 0.0
	got := reserved(reserving(func(_ *planning.Snapshot, cat *catalog.Catalogue, _ *karpenter.CapacityReservation) {
		instance, _ := cat.Find(reservedType)
		for _, o := range instance.Offerings {
			if o.Zone == reservedZone && o.CapacityType == catalog.OnDemand {
				price = o.PricePerHour
			}
		}
	}))
	want := []instancetypes.InstanceOffering{{
		PricedOffering: planning.PricedOffering{
			Offering: event.Offering{InstanceType: reservedType, Zone: reservedZone, CapacityType: karpenter.CapacityTypeReserved},
			ZoneID:   "apne2-az1", PricePerHour: price / 1e7,
		},
		Available: true, Reservation: "cr-1", ReservationCapacity: 5,
		Labels: map[string]string{
			karpenter.LabelCapacityReservationID: "cr-1", karpenter.LabelCapacityReservationType: "default",
			karpenter.LabelCapacityReservationInterruptible: "false",
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" || price == 0 {
		t.Errorf("on-demand price %v\n%s", price, diff)
	}
}

func TestReservationsLeft(t *testing.T) {
	type (
		snapshot    = planning.Snapshot
		catalogue   = catalog.Catalogue
		reservation = karpenter.CapacityReservation
	)
	ends := func(kind karpenter.CapacityReservationType, in time.Duration) func(*snapshot, *catalogue, *reservation) {
		return func(s *snapshot, _ *catalogue, r *reservation) {
			r.ReservationType, r.EndTime = kind, &metav1.Time{Time: s.TakenAt.Add(in)}
		}
	}
	nodes := func(list ...planning.Node) func(*snapshot, *catalogue, *reservation) {
		return func(s *snapshot, c *catalogue, _ *reservation) {
			for i := range list {
				list[i].Created = c.AsOf.Add(time.Duration(list[i].Created.Unix()) * time.Second)
			}
			s.Nodes = list
		}
	}
	refused := func(id, code string, ago time.Duration) func(*snapshot, *catalogue, *reservation) {
		return func(s *snapshot, _ *catalogue, _ *reservation) {
			s.Unavailable = []planning.Unavailable{{
				Offering:    event.Offering{InstanceType: reservedType, Zone: reservedZone, CapacityType: catalog.Reserved},
				Reservation: id, Until: s.TakenAt.Add(ago + planning.UnavailableTTL), Reason: code,
			}}
		}
	}
	since := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	mine := map[string]string{karpenter.LabelCapacityReservationID: "cr-1"}
	planned := []karpenter.NodeSelectorRequirementWithMinValues{{
		Key: karpenter.LabelCapacityReservationID, Operator: corev1.NodeSelectorOpIn, Values: []string{"cr-0", "cr-1"},
	}}
	block, plain := karpenter.CapacityReservationTypeCapacityBlock, karpenter.CapacityReservationTypeDefault
	for _, tt := range []struct {
		name      string
		edit      func(*snapshot, *catalogue, *reservation)
		offered   int
		available bool
		count     int
	}{
		{"as counted", func(*snapshot, *catalogue, *reservation) {}, 1, true, 5},
		{"feature gate off", func(s *snapshot, _ *catalogue, _ *reservation) { s.Settings.Gates = planning.Gates{} }, 0, false, 0},
		{"never counted", func(_ *snapshot, c *catalogue, _ *reservation) { c.Reservations = nil }, 1, true, 0},
		{"full", func(_ *snapshot, c *catalogue, _ *reservation) { c.Reservations[0].Count = 0 }, 1, true, 0},
		{"in a zone without a subnet", func(_ *snapshot, _ *catalogue, r *reservation) { r.AvailabilityZone = "ap-northeast-2z" }, 0, false, 0},
		{"EC2 rejected launches", func(s *snapshot, _ *catalogue, _ *reservation) {
			s.Unavailable = []planning.Unavailable{{Offering: event.Offering{CapacityType: "reserved"}, Until: s.TakenAt.Add(1)}}
		}, 1, false, 5},
		{"reservation is expiring", func(_ *snapshot, _ *catalogue, r *reservation) { r.State = karpenter.CapacityReservationStateExpiring }, 1, false, 5},
		{"ends soon", ends(plain, time.Second), 1, true, 5},
		{"has ended", ends(plain, 0), 1, false, 5},
		{"a block with more than 40 minutes", ends(block, 40*time.Minute+1), 1, true, 5},
		{"a block with 40 minutes", ends(block, 40*time.Minute), 1, false, 5},
		{"a node from long before the count", nodes(planning.Node{Launched: true, Labels: mine, Created: since(-61)}), 1, true, 5},
		{"a node from just before the count", nodes(planning.Node{Launched: true, Labels: mine, Created: since(-60)}), 1, true, 4},
		{"a node from after the count", nodes(planning.Node{Launched: true, Labels: mine, Created: since(1)}), 1, true, 4},
		{"a node from after a count that has been unchanged for long", func(s *snapshot, c *catalogue, _ *reservation) {
			c.Counted = s.TakenAt.Add(-time.Hour)
			s.Nodes = []planning.Node{{Launched: true, Labels: mine, Created: s.TakenAt.Add(-6*time.Minute - 1)}}
		}, 1, true, 5},
		{"a newer node from after a count that has been unchanged for long", func(s *snapshot, c *catalogue, _ *reservation) {
			c.Counted = s.TakenAt.Add(-time.Hour)
			s.Nodes = []planning.Node{{Launched: true, Labels: mine, Created: s.TakenAt.Add(-6 * time.Minute)}}
		}, 1, true, 4},
		{"an old claim for it that is not launched", nodes(planning.Node{Labels: mine, Created: since(-3600)}), 1, true, 4},
		{"an old claim for it that was launched after the count", func(s *snapshot, c *catalogue, _ *reservation) {
			s.Nodes = []planning.Node{{Launched: true, Labels: mine, Created: c.AsOf.Add(-time.Hour), LaunchedAt: c.AsOf.Add(time.Second)}}
		}, 1, true, 4},
		{"an old claim for it that was launched long before the count", func(s *snapshot, c *catalogue, _ *reservation) {
			s.Nodes = []planning.Node{{Launched: true, Labels: mine, Created: c.AsOf.Add(-time.Hour), LaunchedAt: c.AsOf.Add(-time.Minute - 1)}}
		}, 1, true, 5},
		{"an open claim that may use it", nodes(planning.Node{Requirements: planned, Created: since(-3600)}), 1, true, 4},
		{"a node created before a count that is newer than the prices", func(s *snapshot, c *catalogue, _ *reservation) {
			s.Nodes = []planning.Node{{Launched: true, Labels: mine, Created: c.AsOf.Add(time.Minute)}}
			c.Counted = c.AsOf.Add(10 * time.Minute)
		}, 1, true, 5},
		{"a node outside of the reservation", nodes(planning.Node{Launched: true, Created: since(1)}), 1, true, 5},
		{"more nodes than free instances", func(s *snapshot, c *catalogue, _ *reservation) {
			s.Nodes = make([]planning.Node, 6)
			for i := range s.Nodes {
				s.Nodes[i] = planning.Node{Launched: true, Labels: mine, Created: c.AsOf}
			}
		}, 1, true, 0},
		{"EC2 found it full after the count", refused("cr-1", planning.ReservationFullCode, 0), 1, true, 0},
		{"EC2 found it full before the count", func(s *snapshot, c *catalogue, r *reservation) {
			refused("cr-1", planning.ReservationFullCode, -time.Second)(s, c, r)
			c.Counted = s.TakenAt
		}, 1, true, 5},
		{"EC2 found it full, three minutes ago", refused("cr-1", planning.ReservationFullCode, -planning.UnavailableTTL), 1, true, 5},
		{"EC2 found another one full", refused("cr-2", planning.ReservationFullCode, 0), 1, true, 5},
		{"EC2 has no capacity for it", refused("cr-1", "InsufficientInstanceCapacity", 0), 1, false, 5},
		{"its owner reclaims it", refused("cr-1", "InvalidCapacityReservationState.Unavailable", 0), 1, false, 5},
		{"EC2 has no capacity for another one", refused("cr-2", "InsufficientInstanceCapacity", 0), 1, true, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := reserved(reserving(tt.edit))
			if len(got) != tt.offered {
				t.Fatalf("%d offerings: %+v", len(got), got)
			}
			if tt.offered > 0 && (got[0].Available != tt.available || got[0].ReservationCapacity != tt.count) {
				t.Errorf("available %t, %d free; want %t, %d", got[0].Available, got[0].ReservationCapacity, tt.available, tt.count)
			}
		})
	}
}

// TestInterruptedReservationIsUnavailable checks that only a reservation whose owner reclaims instances
// is unavailable, for a limited time.
func TestInterruptedReservationIsUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		id   string
		in   time.Duration
		want bool
	}{
		"this reservation": {"cr-1", time.Minute, false}, "another reservation": {"cr-2", time.Minute, true}, "this reservation, expired now": {"cr-1", 0, true},
	} {
		stock := reserving(func(s *planning.Snapshot, _ *catalog.Catalogue, _ *karpenter.CapacityReservation) {
			s.Unavailable = []planning.Unavailable{{
				Offering:    event.Offering{InstanceType: reservedType, Zone: reservedZone, CapacityType: catalog.OnDemand},
				Reservation: c.id, Until: s.TakenAt.Add(c.in),
			}}
		})
		if got := reserved(stock); len(got) != 1 || got[0].Available != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		for _, typ := range stock.ByNodeClass[planningtest.NewNodeClass().Name] {
			for _, o := range typ.Offerings {
				if typ.Name == reservedType && o.Zone == reservedZone && o.CapacityType == catalog.OnDemand && !o.Available {
					t.Errorf("%s: on-demand offerings are unavailable too", name)
				}
			}
		}
	}
}

// TestPodsExceedReservation plans three pods that each fill a node of the reserved type, with one
// instance left in the reservation.
func TestPodsExceedReservation(t *testing.T) {
	batch, cat := planningtest.NewBatch(planningtest.NewPods("web", 3, "1500m", "1Gi")), planningtest.NewCatalogue()
	batch.Snapshot.Settings.Gates.ReservedCapacity = true
	batch.Snapshot.NodeClasses[0].Status.CapacityReservations = []karpenter.CapacityReservation{{ID: "cr-1", InstanceType: reservedType, AvailabilityZone: reservedZone}}
	requirements := batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	for i := range requirements {
		if requirements[i].Key == karpenter.CapacityTypeLabelKey {
			requirements[i].Values = []string{karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand}
		}
	}
	cat.AsOf, cat.Reservations = batch.Snapshot.TakenAt.Add(-time.Hour), []catalog.ReservationCount{{ID: "cr-1", Count: 1}}
	result := solver.Solve(batch, cat)
	if err := planningtest.CheckResult(batch, cat, result); err != nil {
		t.Errorf("the plan is wrong:\n%v", err)
	}
	onReserved := 0
	for _, n := range result.Nodes {
		if n.Offerings[0].CapacityType == karpenter.CapacityTypeReserved {
			onReserved++
		}
	}
	if onReserved != 1 || len(result.Nodes) < 2 || len(result.Unplaced) > 0 {
		t.Errorf("%d of %d nodes are reserved, and %d pod classes are unplaced", onReserved, len(result.Nodes), len(result.Unplaced))
	}
}
