package catalog

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// newMarket is a catalog that asks AWS.
func newMarket(t *testing.T) *bench {
	b := newBench(t)
	b.Market, b.Prices, b.Shifts = b.ec2, b.ec2, b.ec2
	return b
}

// sold asks for the catalogue and gives what is current then, and what the
// service warned of if it said that the catalogue changed.
func (b *bench) sold(t *testing.T) (catalog.Catalogue, []string) {
	t.Helper()
	before := len(b.said)
	if err := b.ask(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: b.now}); err != nil {
		t.Fatal(err)
	}
	ref, err := blob.Latest(t.Context(), b.blobs, catalog.Kind)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), b.blobs, ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(b.said) == before {
		return doc, nil
	}
	fact := last[event.CatalogRefreshed](t, b)
	if fact.Catalogue != ref {
		t.Errorf("the fact names %v, the pointer %v", fact.Catalogue, ref)
	}
	return doc, fact.Warnings
}

// What the model sells is what is published, all of it and nothing else.
func TestMarketIsTheModels(t *testing.T) {
	b := newMarket(t)
	doc, warnings := b.sold(t)
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	want := memcloud.Small("us-west-2")
	// What EC2 does not say comes from the embedded catalogue.
	ignore := []cmp.Option{
		cmpopts.IgnoreFields(catalog.InstanceType{}, "OS", "ClockMHz"), cmpopts.IgnoreFields(catalog.Network{}, "BranchENIs", "Mbps"),
	}
	if diff := cmp.Diff(want.Types, doc.Types, ignore...); diff != "" {
		t.Error(diff)
	}
	if !doc.AsOf.Equal(start) || doc.Cluster.Name != "demo" || doc.Sources[0].Source != "ec2:DescribeInstanceTypes" {
		t.Errorf("as of %s for %q by %+v", doc.AsOf, doc.Cluster.Name, doc.Sources)
	}
}

// calls counts the calls of the market since the last time.
func (b *bench) calls() map[memcloud.Action]int {
	out := map[memcloud.Action]int{}
	for _, action := range marketActions {
		out[action] = b.ec2.Counts()[action].Calls
	}
	return out
}

var marketActions = []memcloud.Action{
	memcloud.DescribeInstanceTypes, memcloud.DescribeInstanceTypeOfferings, memcloud.DescribeAvailabilityZones,
	memcloud.DescribeSpotPriceHistory, memcloud.GetProducts, memcloud.GetManagedResource,
}

// Thirteen hours of ticks, each in a process that remembers nothing.
func TestMarketIsReadOnTime(t *testing.T) {
	b := newMarket(t)
	for range 13 * 60 {
		if err := b.ask(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: b.now}); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Minute)
	}
	want := map[memcloud.Action]int{
		memcloud.DescribeInstanceTypes: 2, memcloud.DescribeSpotPriceHistory: 2, memcloud.GetProducts: 2,
		memcloud.DescribeInstanceTypeOfferings: 156, memcloud.DescribeAvailabilityZones: 156, memcloud.GetManagedResource: 780,
	}
	if diff := cmp.Diff(want, b.calls()); diff != "" {
		t.Error(diff)
	}
	if len(b.said) != 1 {
		t.Errorf("what did not change was said %d times", len(b.said))
	}
}

// Reading the same again writes no document, until half their retention is over;
// and then nothing that is current has been forgotten.
func TestMarketWritesNothingThatIsThere(t *testing.T) {
	b := newMarket(t)
	b.sold(t)
	ref, _ := blob.Latest(t.Context(), b.blobs, catalog.Kind)
	for _, step := range []struct {
		after time.Duration
		want  time.Time
	}{{time.Hour, start}, {blob.Retention/2 - 2*time.Hour, start}, {2 * time.Hour, start.Add(blob.Retention/2 + time.Hour)}} {
		b.now = b.now.Add(step.after)
		b.sold(t)
		for _, key := range []string{ref.Key(), catalog.Kind + "/latest"} {
			if written, err := b.blobs.Written(t.Context(), key); err != nil || !written.Equal(step.want) {
				t.Errorf("%s at %s: written at %s, want %s (%v)", key, b.now, written, step.want, err)
			}
		}
	}
}

func TestMarketSaysWhatChanged(t *testing.T) {
	const zone = "us-west-2b"
	spot := memcloud.Offering{Type: "m6i.large", Zone: zone, CapacityType: cloud.Spot}
	for _, test := range []struct {
		name   string
		change func(b *bench)
		after  time.Duration
		see    func(o catalog.Offering, sold bool) bool
	}{
		{"a withdrawn offering, after 5 minutes", func(b *bench) { b.ec2.Withdraw(memcloud.Offering{Type: "m6i.large", Zone: zone}) },
			5 * time.Minute, func(_ catalog.Offering, sold bool) bool { return !sold }},
		{"a spot price, after 12 hours", func(b *bench) { b.ec2.SetPrice(spot, 0.5) },
			12 * time.Hour, func(o catalog.Offering, sold bool) bool { return sold && o.PricePerHour == 0.5 }},
		{"a shift, with the next tick", func(b *bench) {
			b.ec2.Shift(cloud.ZonalShift{ZoneID: "usw2-az2", Until: start.Add(time.Hour)})
		}, time.Minute, func(o catalog.Offering, sold bool) bool { return sold && !o.Available }},
		{"a zone that is down, after 5 minutes", func(b *bench) { b.ec2.SetZoneDown(zone, true) },
			5 * time.Minute, func(o catalog.Offering, sold bool) bool { return sold && !o.Available }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newMarket(t)
			b.sold(t)
			test.change(b)
			for _, step := range []struct {
				after time.Duration
				want  bool
			}{{0, false}, {test.after, true}} {
				b.now = start.Add(step.after)
				doc, _ := b.sold(t)
				at, sold := find(doc, spot)
				if got := test.see(at, sold); got != step.want {
					t.Errorf("after %s: seen %t", step.after, got)
				}
			}
			if len(b.said) != 2 {
				t.Errorf("it was said %d times", len(b.said))
			}
		})
	}
}

func find(doc catalog.Catalogue, o memcloud.Offering) (catalog.Offering, bool) {
	t, _ := doc.Find(o.Type)
	i := slices.IndexFunc(t.Offerings, func(x catalog.Offering) bool { return x.Zone == o.Zone && x.CapacityType == o.CapacityType })
	if i < 0 {
		return catalog.Offering{}, false
	}
	return t.Offerings[i], true
}

// A shift ends by itself, also while nobody may ask about it.
func TestShiftEnds(t *testing.T) {
	b := newMarket(t)
	b.ec2.Shift(cloud.ZonalShift{ZoneID: "usw2-az2", Until: start.Add(30 * time.Minute)})
	if doc, _ := b.sold(t); !slices.Equal(doc.ShiftedZones, []string{"usw2-az2"}) {
		t.Fatalf("shifted away from %v", doc.ShiftedZones)
	}
	b.ec2.Deny(memcloud.GetManagedResource)
	b.now = start.Add(29 * time.Minute)
	if doc, _ := b.sold(t); len(doc.ShiftedZones) != 1 {
		t.Fatal("a lost right ended a shift")
	}
	b.now = start.Add(31 * time.Minute)
	if doc, _ := b.sold(t); len(doc.ShiftedZones) != 0 {
		t.Fatal("a shift goes on after its end")
	}
}
