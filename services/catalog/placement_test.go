package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// refreshStatic sends a catalogue tick and returns the published catalogue.
func (h *harness) refreshStatic(t *testing.T) catalog.Catalogue {
	t.Helper()
	if err := h.handleFrom(t, "scheduler", catalogueTick); err != nil {
		t.Fatal(err)
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), h.blobs, lastPublished[event.CatalogRefreshed](t, h).Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	return doc
}

// The catalogue has the account's counts with their time. A new time with the same counts
// gives no new catalogue.
func TestCatalogueHasCounts(t *testing.T) {
	h := newHarness(t)
	block := h.ec2.AddReservation(cloud.Reservation{InstanceType: "p5.48xlarge", Zone: "us-west-2b", Available: 4, Kind: cloud.CapacityBlock, Ends: start.Add(24 * time.Hour)})
	group := h.ec2.AddPlacementGroup(cloud.PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 7})
	h.ec2.SetFreeIPs(h.account.Subnets[1].ID, 17)
	doc := h.refreshStatic(t)
	if diff := cmp.Diff([]catalog.ReservationCount{{ID: block.ID, Count: 4}}, doc.Reservations); diff != "" {
		t.Errorf("reservations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]catalog.PlacementGroup{{ID: group.ID, Name: "racks", Strategy: "partition", Partitions: 7}}, doc.PlacementGroups); diff != "" {
		t.Errorf("placement groups (-want +got):\n%s", diff)
	}
	free := map[string]int64{}
	for _, n := range doc.Subnets {
		free[n.ID] = n.FreeIPs
	}
	if len(free) != 3 || free[h.account.Subnets[1].ID] != 17 || free[h.account.Subnets[0].ID] != 4091 {
		t.Errorf("subnets %v", free)
	}
	if !doc.CountedAt().Equal(start) {
		t.Errorf("counted at %s", doc.CountedAt())
	}
	h.now = h.now.Add(5 * time.Minute)
	if again := h.refreshStatic(t); len(h.published) != 1 || !again.CountedAt().Equal(start) {
		t.Errorf("same counts: %d events, counted at %s", len(h.published), again.CountedAt())
	}
	h.ec2.SetFreeIPs(h.account.Subnets[1].ID, 16)
	if other := h.refreshStatic(t); len(h.published) != 2 || !other.CountedAt().Equal(h.now) {
		t.Errorf("changed counts: %d events, counted at %s", len(h.published), other.CountedAt())
	}
}

// Policies written for Karpenter lack the two permissions. The catalogue is published
// without these counts.
func TestDeniedCountsAreWarnings(t *testing.T) {
	h := newHarness(t)
	h.ec2.AddReservation(cloud.Reservation{InstanceType: "m6i.large", Zone: "us-west-2a", Available: 1})
	h.ec2.Deny(memcloud.DescribeReservations, memcloud.DescribeGroups)
	doc := h.refreshStatic(t)
	if warnings := lastPublished[event.CatalogRefreshed](t, h).Warnings; len(warnings) != 2 || !strings.Contains(warnings[0], "ec2:DescribeCapacityReservations") {
		t.Errorf("warnings %q", warnings)
	}
	if len(doc.Reservations) > 0 || len(doc.PlacementGroups) > 0 || len(doc.Subnets) != 3 || len(doc.Types) == 0 {
		t.Errorf("%d reservations, %d groups, %d subnets, %d types", len(doc.Reservations), len(doc.PlacementGroups), len(doc.Subnets), len(doc.Types))
	}
}

// A temporary failure must not look like an account without reservations: the current
// catalogue stays.
func TestFailedCountKeepsCatalogue(t *testing.T) {
	h := newHarness(t)
	h.refreshStatic(t)
	h.ec2.Refuse(memcloud.DescribeReservations, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	if err := h.handleFrom(t, "scheduler", catalogueTick); !fault.Is(err, fault.Throttled) || len(h.published) != 1 {
		t.Fatalf("error %v, %d events", err, len(h.published))
	}
}
