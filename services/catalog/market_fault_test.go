package catalog

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Whatever is denied or broken from the start, the rest is live, and the warning
// names the action. Nothing but a cluster that nobody can describe is an error.
func TestMarketPartByPart(t *testing.T) {
	for _, action := range marketActions {
		for _, how := range []fault.Kind{fault.Denied, fault.Throttled, fault.Retry} {
			t.Run(string(action)+" "+string(how), func(t *testing.T) {
				b := newMarket(t)
				if how == fault.Denied {
					b.ec2.Deny(action)
				} else {
					b.ec2.Refuse(action, how, "Code", "no")
				}
				doc, warnings := b.sold(t)
				if len(warnings) != 1 || !strings.Contains(warnings[0], string(action)) {
					t.Fatalf("warnings: %q", warnings)
				}
				if how == fault.Denied && !strings.Contains(warnings[0], "denied") {
					t.Errorf("the warning does not say that it is a right: %q", warnings[0])
				}
				if len(doc.Types) == 0 {
					t.Error("nothing is sold")
				}
				for a, n := range b.calls() {
					if n != 1 {
						t.Errorf("%s was called %d times", a, n)
					}
				}
				b.ec2.Allow(action)
				b.now = b.now.Add(5 * time.Minute)
				whole, warnings := b.sold(t)
				if len(warnings) > 0 || len(whole.Types) != len(memcloud.Small("us-west-2").Types) {
					t.Errorf("afterwards: %d types, warnings %q", len(whole.Types), warnings)
				}
			})
		}
	}
}

// A right that is lost later leaves what was read, and not the embedded data.
func TestLostRightKeepsWhatWasRead(t *testing.T) {
	b := newMarket(t)
	before, _ := b.sold(t)
	b.ec2.Deny(marketActions...)
	b.ec2.Deny(memcloud.DescribeCluster)
	b.now = b.now.Add(13 * time.Hour)
	after, _ := b.sold(t)
	if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(catalog.Catalogue{}, "Counted")); diff != "" {
		t.Error(diff)
	}
}

func TestSkipsThePriceList(t *testing.T) {
	for _, test := range []struct {
		name, pricesOf string
		spoil          func(*bench)
	}{
		{"isolated", "2025-05-28", func(b *bench) { b.Isolated = true }},
		{"GovCloud", "2026-07-06", func(b *bench) { b.Region = "us-gov-west-1" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newMarket(t)
			test.spoil(b)
			doc, warnings := b.sold(t)
			if b.calls()[memcloud.GetProducts] > 0 {
				t.Error("the price list was read")
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "on-demand prices: the embedded ones of "+test.pricesOf) {
				t.Errorf("warnings: %q", warnings)
			}
			if o, sold := find(doc, memcloud.Offering{Type: "m6i.large", Zone: "us-west-2b", CapacityType: cloud.OnDemand}); !sold || o.PricePerHour <= 0 {
				t.Errorf("m6i.large is sold: %t, for %v", sold, o.PricePerHour)
			}
		})
	}
}

func TestMarketWithoutAnything(t *testing.T) {
	b := newMarket(t)
	b.Region = "mars-north-1"
	b.ec2.Deny(marketActions...)
	err := b.ask(t, "scheduler", due)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "ec2:DescribeInstanceTypeOfferings") || fault.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	if len(b.said) > 0 {
		t.Error("a catalogue of nothing was published")
	}
}

// nothing is a market that answers at once, with nothing.
type nothing struct{ cloud.Market }

func (nothing) TypeOfferings(context.Context) ([]cloud.TypeOffering, error) { return nil, nil }

func TestMarketBelievesNoEmptyList(t *testing.T) {
	b := newMarket(t)
	before, _ := b.sold(t)
	b.Market = nothing{b.ec2}
	b.now = b.now.Add(5 * time.Minute)
	if after, _ := b.sold(t); len(after.Types) != len(before.Types) {
		t.Errorf("%d types were left", len(after.Types))
	}
}

// What was remembered and cannot be read is read from AWS again; a store that
// does not answer is asked again.
func TestMarketForgets(t *testing.T) {
	put := func(text string) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			t.Helper()
			if err := b.blobs.Put(t.Context(), stateKey, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	book := func(change func(*market.Book)) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			t.Helper()
			state, doc, err := b.recalled(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			change(&doc)
			if err := b.remember(t.Context(), state, doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spoil := range map[string]func(*testing.T, *bench){
		"no JSON":             put("{"),
		"another shape":       put(`{"book":{},"readings":{}}`),
		"nothing":             put(`null`),
		"another format":      book(func(b *market.Book) { b.Format++ }),
		"another region":      book(func(b *market.Book) { b.Region = "x" }),
		"a book that is gone": func(_ *testing.T, b *bench) { b.blobs.SetFaults(memblob.Faults{Missing: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newMarket(t)
			b.sold(t)
			spoil(t, b)
			b.now = b.now.Add(time.Minute)
			if err := b.ask(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: b.now}); err != nil {
				t.Fatal(err)
			}
			if n := b.calls()[memcloud.DescribeInstanceTypes]; n != 2 {
				t.Errorf("types were read %d times", n)
			}
		})
	}
	t.Run("a store that fails", func(t *testing.T) {
		b := newMarket(t)
		b.sold(t)
		b.blobs.SetFaults(memblob.Faults{FailGet: 1})
		if err := b.ask(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: b.now}); !fault.Is(err, fault.Retry) {
			t.Errorf("got %v", err)
		}
	})
}

// A slow part leaves the others for the next tick instead of for ever.
func TestMarketReadsNoLongerThanATickLasts(t *testing.T) {
	b := newMarket(t)
	b.Market = slow{b.ec2, b}
	for range 2 {
		if err := b.ask(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: b.now}); err != nil {
			t.Fatal(err)
		}
	}
	for action, n := range b.calls() {
		if n != 1 {
			t.Errorf("%s was called %d times", action, n)
		}
	}
}

type slow struct {
	cloud.Market
	b *bench
}

func (s slow) InstanceTypes(ctx context.Context) ([]cloud.InstanceType, error) {
	s.b.now = s.b.now.Add(100 * time.Second)
	return s.Market.InstanceTypes(ctx)
}
