package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// newMarketHarness returns a harness whose catalog reads the market from memcloud.
func newMarketHarness(t *testing.T) *harness {
	h := newHarness(t)
	h.Market, h.Prices, h.Shifts = h.ec2, h.ec2, h.ec2
	return h
}

// refreshMarket sends a catalogue tick. It returns the current catalogue and the warnings
// of the published event, if any.
func (h *harness) refreshMarket(t *testing.T) (catalog.Catalogue, []string) {
	t.Helper()
	before := len(h.published)
	if err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: h.now}); err != nil {
		t.Fatal(err)
	}
	ref, err := blob.GetLatest(t.Context(), h.blobs, catalog.Kind)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), h.blobs, ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(h.published) == before {
		return doc, nil
	}
	fact := lastPublished[event.CatalogRefreshed](t, h)
	if fact.Catalogue != ref {
		t.Errorf("the event has %v, the pointer %v", fact.Catalogue, ref)
	}
	return doc, fact.Warnings
}

// The published catalogue equals memcloud's.
func TestCatalogueMatchesModel(t *testing.T) {
	h := newMarketHarness(t)
	doc, warnings := h.refreshMarket(t)
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	want := memcloud.Small("us-west-2")
	// These fields come from the embedded catalogue.
	ignore := []cmp.Option{
		cmpopts.IgnoreFields(catalog.InstanceType{}, "OS", "ClockMHz"), cmpopts.IgnoreFields(catalog.Network{}, "BranchENIs", "Mbps"),
	}
	if diff := cmp.Diff(want.Types, doc.Types, ignore...); diff != "" {
		t.Error(diff)
	}
	if !doc.AsOf.Equal(start) || doc.Cluster.Name != "demo" || doc.Sources[0].Source != "ec2:DescribeInstanceTypes" {
		t.Errorf("asOf %s, cluster %q, sources %+v", doc.AsOf, doc.Cluster.Name, doc.Sources)
	}
}

// A catalogue that is read once, without a bucket and without EKS, has the types, offerings and prices
// that the service publishes.
func TestReadCatalogueOnce(t *testing.T) {
	h := newMarketHarness(t)
	published, _ := h.refreshMarket(t)
	reader := Service{Market: h.ec2, Prices: h.ec2, Region: h.Region, Now: h.Now}
	doc, warnings, err := reader.ReadCatalogue(t.Context(), published.Cluster)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, warnings %q", err, warnings)
	}
	if diff := cmp.Diff(published, doc, cmpopts.IgnoreFields(catalog.Catalogue{}, "Sources", "Counted", "Reservations", "Subnets", "PlacementGroups")); diff != "" {
		t.Error(diff)
	}
	h.ec2.Refuse(memcloud.GetProducts, fault.Denied, "AccessDenied", "no")
	if _, warnings, err := reader.ReadCatalogue(t.Context(), published.Cluster); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "on-demand prices: using the embedded ones") {
		t.Errorf("without the price list: %v, warnings %q", err, warnings)
	}
}

// marketCalls returns the number of calls of each market action.
func (h *harness) marketCalls() map[memcloud.Action]int {
	out := map[memcloud.Action]int{}
	for _, action := range marketActions {
		out[action] = h.ec2.Counts()[action].Calls
	}
	return out
}

var marketActions = []memcloud.Action{
	memcloud.DescribeInstanceTypes, memcloud.DescribeInstanceTypeOfferings, memcloud.DescribeAvailabilityZones,
	memcloud.DescribeSpotPriceHistory, memcloud.GetProducts, memcloud.GetManagedResource,
}

// The schedule is kept over 13 hours of ticks without in-memory state.
func TestMarketFollowsSchedule(t *testing.T) {
	h := newMarketHarness(t)
	for range 13 * 60 {
		if err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: h.now}); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Minute)
	}
	want := map[memcloud.Action]int{
		memcloud.DescribeInstanceTypes: 2, memcloud.DescribeSpotPriceHistory: 2, memcloud.GetProducts: 2,
		memcloud.DescribeInstanceTypeOfferings: 156, memcloud.DescribeAvailabilityZones: 156, memcloud.GetManagedResource: 780,
	}
	if diff := cmp.Diff(want, h.marketCalls()); diff != "" {
		t.Error(diff)
	}
	if len(h.published) != 1 {
		t.Errorf("published %d events, want 1", len(h.published))
	}
}

// Reading unchanged parts writes no document until half of the retention is over. Then the
// current documents are written again.
func TestMarketDoesNotRewriteDocuments(t *testing.T) {
	h := newMarketHarness(t)
	h.refreshMarket(t)
	ref, _ := blob.GetLatest(t.Context(), h.blobs, catalog.Kind)
	for _, step := range []struct {
		after time.Duration
		want  time.Time
	}{{time.Hour, start}, {blob.Retention/2 - 2*time.Hour, start}, {2 * time.Hour, start.Add(blob.Retention/2 + time.Hour)}} {
		h.now = h.now.Add(step.after)
		h.refreshMarket(t)
		for _, key := range []string{ref.Key(), catalog.Kind + "/latest"} {
			if written, err := h.blobs.LastWritten(t.Context(), key); err != nil || !written.Equal(step.want) {
				t.Errorf("%s at %s: written at %s, want %s (%v)", key, h.now, written, step.want, err)
			}
		}
	}
}

func TestMarketPublishesChanges(t *testing.T) {
	const zone = "us-west-2b"
	spot := event.Offering{InstanceType: "m6i.large", Zone: zone, CapacityType: cloud.Spot}
	for _, test := range []struct {
		name      string
		change    func(h *harness)
		after     time.Duration
		isChanged func(o catalog.Offering, offered bool) bool
	}{
		{"a withdrawn offering, after 5 minutes", func(h *harness) { h.ec2.Withdraw(event.Offering{InstanceType: "m6i.large", Zone: zone}) },
			5 * time.Minute, func(_ catalog.Offering, offered bool) bool { return !offered }},
		{"a spot price, after 12 hours", func(h *harness) { h.ec2.SetPrice(spot, 0.5) },
			12 * time.Hour, func(o catalog.Offering, offered bool) bool { return offered && o.PricePerHour == 0.5 }},
		{"a zonal shift, after a minute", func(h *harness) {
			h.ec2.Shift(cloud.ZonalShift{ZoneID: "usw2-az2", Until: start.Add(time.Hour)})
		}, time.Minute, func(o catalog.Offering, offered bool) bool { return offered && !o.Available }},
		{"a zone that is down, after 5 minutes", func(h *harness) { h.ec2.SetZoneDown(zone, true) },
			5 * time.Minute, func(o catalog.Offering, offered bool) bool { return offered && !o.Available }},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newMarketHarness(t)
			h.refreshMarket(t)
			test.change(h)
			for _, step := range []struct {
				after time.Duration
				want  bool
			}{{0, false}, {test.after, true}} {
				h.now = start.Add(step.after)
				doc, _ := h.refreshMarket(t)
				offering, offered := findOffering(doc, spot)
				if got := test.isChanged(offering, offered); got != step.want {
					t.Errorf("after %s: changed %t", step.after, got)
				}
			}
			if len(h.published) != 2 {
				t.Errorf("published %d events, want 2", len(h.published))
			}
		})
	}
}

func findOffering(doc catalog.Catalogue, o event.Offering) (catalog.Offering, bool) {
	t, _ := doc.Find(o.InstanceType)
	i := slices.IndexFunc(t.Offerings, func(x catalog.Offering) bool { return x.Zone == o.Zone && x.CapacityType == o.CapacityType })
	if i < 0 {
		return catalog.Offering{}, false
	}
	return t.Offerings[i], true
}

// A cached zonal shift ends at its end time even if it cannot be read again.
func TestZonalShiftEnds(t *testing.T) {
	h := newMarketHarness(t)
	h.ec2.Shift(cloud.ZonalShift{ZoneID: "usw2-az2", Until: start.Add(30 * time.Minute)})
	if doc, _ := h.refreshMarket(t); !slices.Equal(doc.ShiftedZones, []string{"usw2-az2"}) {
		t.Fatalf("shifted zones %v", doc.ShiftedZones)
	}
	h.ec2.Deny(memcloud.GetManagedResource)
	h.now = start.Add(29 * time.Minute)
	if doc, _ := h.refreshMarket(t); len(doc.ShiftedZones) != 1 {
		t.Fatal("a removed permission ended the zonal shift")
	}
	h.now = start.Add(31 * time.Minute)
	if doc, _ := h.refreshMarket(t); len(doc.ShiftedZones) != 0 {
		t.Fatal("the zonal shift did not end")
	}
}
