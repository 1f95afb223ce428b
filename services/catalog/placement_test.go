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

// refreshed is the catalogue after another tick.
func (b *bench) refreshed(t *testing.T) catalog.Catalogue {
	t.Helper()
	if err := b.ask(t, "scheduler", due); err != nil {
		t.Fatal(err)
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), b.blobs, last[event.CatalogRefreshed](t, b).Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	return doc
}

// what the account has left is in the catalogue, under the time
// at which it was counted, and that time alone makes no new catalogue.
func TestCountsAreInTheCatalogue(t *testing.T) {
	b := newBench(t)
	block := b.ec2.AddReservation(cloud.Reservation{InstanceType: "p5.48xlarge", Zone: "us-west-2b", Available: 4, Kind: cloud.CapacityBlock, Ends: start.Add(24 * time.Hour)})
	group := b.ec2.AddPlacementGroup(cloud.PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 7})
	b.ec2.SetFreeIPs(b.world.Subnets[1].ID, 17)
	doc := b.refreshed(t)
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
	if len(free) != 3 || free[b.world.Subnets[1].ID] != 17 || free[b.world.Subnets[0].ID] != 4091 {
		t.Errorf("subnets %v", free)
	}
	if !doc.CountedAt().Equal(start) {
		t.Errorf("counted at %s", doc.CountedAt())
	}
	b.now = b.now.Add(5 * time.Minute)
	if again := b.refreshed(t); len(b.said) != 1 || !again.CountedAt().Equal(start) {
		t.Errorf("the same counts are said %d times, of %s", len(b.said), again.CountedAt())
	}
	b.ec2.SetFreeIPs(b.world.Subnets[1].ID, 16)
	if other := b.refreshed(t); len(b.said) != 2 || !other.CountedAt().Equal(b.now) {
		t.Errorf("other counts are said %d times, of %s", len(b.said), other.CountedAt())
	}
}

// the seeds' policies lack the two rights. Types and prices go on; what may
// not be read is not known.
func TestCountsThatAreDenied(t *testing.T) {
	b := newBench(t)
	b.ec2.AddReservation(cloud.Reservation{InstanceType: "m6i.large", Zone: "us-west-2a", Available: 1})
	b.ec2.Deny(memcloud.DescribeReservations, memcloud.DescribeGroups)
	doc := b.refreshed(t)
	if warnings := last[event.CatalogRefreshed](t, b).Warnings; len(warnings) != 2 || !strings.Contains(warnings[0], "ec2:DescribeCapacityReservations") {
		t.Errorf("warnings %q", warnings)
	}
	if len(doc.Reservations) > 0 || len(doc.PlacementGroups) > 0 || len(doc.Subnets) != 3 || len(doc.Types) == 0 {
		t.Errorf("%d reservations, %d groups, %d subnets, %d types", len(doc.Reservations), len(doc.PlacementGroups), len(doc.Subnets), len(doc.Types))
	}
}

// A count that fails for a moment must not look like an account without
// reservations: the catalogue stays as it is.
func TestCountsThatFail(t *testing.T) {
	b := newBench(t)
	b.refreshed(t)
	b.ec2.Refuse(memcloud.DescribeReservations, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	if err := b.ask(t, "scheduler", due); !fault.Is(err, fault.Throttled) || len(b.said) != 1 {
		t.Fatalf("got %v and %d facts", err, len(b.said))
	}
}
