package catalog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// If one action always fails, the other parts are read from AWS, and the warning names the
// action.
func TestMarketPartsFailSeparately(t *testing.T) {
	for _, action := range marketActions {
		for _, how := range []fault.Kind{fault.Denied, fault.Throttled, fault.Retry} {
			t.Run(string(action)+" "+string(how), func(t *testing.T) {
				h := newMarketHarness(t)
				if how == fault.Denied {
					h.ec2.Deny(action)
				} else {
					h.ec2.Refuse(action, how, "Code", "no")
				}
				doc, warnings := h.refreshMarket(t)
				if len(warnings) != 1 || !strings.Contains(warnings[0], string(action)) {
					t.Fatalf("warnings: %q", warnings)
				}
				if how == fault.Denied && !strings.Contains(warnings[0], "denied") {
					t.Errorf("the warning does not mention the denial: %q", warnings[0])
				}
				if len(doc.Types) == 0 {
					t.Error("the catalogue has no types")
				}
				for a, n := range h.marketCalls() {
					if n != 1 {
						t.Errorf("%s was called %d times", a, n)
					}
				}
				h.ec2.Allow(action)
				h.now = h.now.Add(5 * time.Minute)
				complete, warnings := h.refreshMarket(t)
				if len(warnings) > 0 || len(complete.Types) != len(memcloud.Small("us-west-2").Types) {
					t.Errorf("after the recovery: %d types, warnings %q", len(complete.Types), warnings)
				}
			})
		}
	}
}

// If a permission is removed later, the cached parts are kept, not replaced by embedded ones.
func TestLostPermissionKeepsCachedParts(t *testing.T) {
	h := newMarketHarness(t)
	before, _ := h.refreshMarket(t)
	h.ec2.Deny(marketActions...)
	h.ec2.Deny(memcloud.DescribeCluster)
	h.now = h.now.Add(13 * time.Hour)
	after, _ := h.refreshMarket(t)
	if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(catalog.Catalogue{}, "Counted")); diff != "" {
		t.Error(diff)
	}
}

func TestMarketSkipsPriceList(t *testing.T) {
	for _, test := range []struct {
		name, pricesOf string
		change         func(*harness)
	}{
		{"isolated", "2025-05-28", func(h *harness) { h.Isolated = true }},
		{"GovCloud", "2026-10-23", func(h *harness) { h.Region = "us-gov-west-1" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newMarketHarness(t)
			test.change(h)
			doc, warnings := h.refreshMarket(t)
			if h.marketCalls()[memcloud.GetProducts] > 0 {
				t.Error("the price list was read")
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "on-demand prices: using the embedded ones of "+test.pricesOf) {
				t.Errorf("warnings: %q", warnings)
			}
			if o, offered := findOffering(doc, event.Offering{InstanceType: "m6i.large", Zone: "us-west-2b", CapacityType: cloud.OnDemand}); !offered || o.PricePerHour <= 0 {
				t.Errorf("m6i.large is offered: %t, price %v", offered, o.PricePerHour)
			}
		})
	}
}

func TestMarketWithoutAnyPart(t *testing.T) {
	h := newMarketHarness(t)
	h.Region = "mars-north-1"
	h.ec2.Deny(marketActions...)
	err := h.handleFrom(t, "scheduler", catalogueTick)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "ec2:DescribeInstanceTypeOfferings") || fault.FindHint(err) == "" {
		t.Errorf("got %v", err)
	}
	if len(h.published) > 0 {
		t.Error("an empty catalogue was published")
	}
}

// emptyMarket is a market that returns empty lists.
type emptyMarket struct{ cloud.Market }

func (emptyMarket) TypeOfferings(context.Context) ([]cloud.TypeOffering, error) { return nil, nil }

func TestMarketRejectsEmptyList(t *testing.T) {
	h := newMarketHarness(t)
	before, _ := h.refreshMarket(t)
	h.Market = emptyMarket{h.ec2}
	h.now = h.now.Add(5 * time.Minute)
	if after, _ := h.refreshMarket(t); len(after.Types) != len(before.Types) {
		t.Errorf("%d types, want the previous ones", len(after.Types))
	}
}

// An unusable cache is read from AWS again. A failing store is an error, so that the
// message is retried.
func TestMarketDiscardsUnusableCache(t *testing.T) {
	putState := func(text string) func(*testing.T, *harness) {
		return func(t *testing.T, h *harness) {
			t.Helper()
			if err := h.blobs.Put(t.Context(), stateKey, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	changeCache := func(change func(*market.CachedParts)) func(*testing.T, *harness) {
		return func(t *testing.T, h *harness) {
			t.Helper()
			state, doc, err := h.loadMarket(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			change(&doc)
			if err := h.storeMarket(t.Context(), state, doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, change := range map[string]func(*testing.T, *harness){
		"invalid JSON":       putState("{"),
		"missing fields":     putState(`{"cache":{},"readings":{}}`),
		"null":               putState(`null`),
		"another format":     changeCache(func(h *market.CachedParts) { h.Format++ }),
		"another region":     changeCache(func(h *market.CachedParts) { h.Region = "x" }),
		"a missing document": func(_ *testing.T, h *harness) { h.blobs.SetFaults(memblob.Faults{Missing: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newMarketHarness(t)
			h.refreshMarket(t)
			change(t, h)
			h.now = h.now.Add(time.Minute)
			if err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: h.now}); err != nil {
				t.Fatal(err)
			}
			if n := h.marketCalls()[memcloud.DescribeInstanceTypes]; n != 2 {
				t.Errorf("types were read %d times", n)
			}
		})
	}
	t.Run("a failing store", func(t *testing.T) {
		h := newMarketHarness(t)
		h.refreshMarket(t)
		h.blobs.SetFaults(memblob.Faults{FailGet: 1})
		if err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: h.now}); !fault.Is(err, fault.Retry) {
			t.Errorf("got %v", err)
		}
	})
}

// After a slow part, the next tick reads the remaining parts.
func TestMarketStopsReadingAtItsTimeLimit(t *testing.T) {
	h := newMarketHarness(t)
	h.Market = slowMarket{h.ec2, h}
	for range 2 {
		if err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: h.now}); err != nil {
			t.Fatal(err)
		}
	}
	for action, n := range h.marketCalls() {
		if n != 1 {
			t.Errorf("%s was called %d times", action, n)
		}
	}
}

type slowMarket struct {
	cloud.Market
	harness *harness
}

func (s slowMarket) InstanceTypes(ctx context.Context) ([]cloud.InstanceType, error) {
	s.harness.now = s.harness.now.Add(100 * time.Second)
	return s.Market.InstanceTypes(ctx)
}

// slowPrices is a price list that does not answer in time.
type slowPrices struct{}

func (slowPrices) OnDemandPrices(ctx context.Context, _ string) ([]cloud.OnDemandPrice, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A price list that is still being read at the end of a message does not lose the parts that were read before it: the
// catalogue has embedded prices, and the next tick reads the prices again.
func TestSlowPriceList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMarketHarness(t)
		h.Prices = slowPrices{}
		for range 3 {
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			e, err := event.Maker{Service: "scheduler", Cluster: demo}.New(h.now, event.Tick{Want: event.WantCatalogue, Due: h.now}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Handle(ctx, e); err != nil {
				t.Fatal(err)
			}
			stop()
			h.now = h.now.Add(5 * time.Minute)
		}
		if _, err := blob.GetLatest(t.Context(), h.blobs, catalog.Kind); err != nil {
			t.Fatal(err)
		}
		if warnings := lastPublished[event.CatalogRefreshed](t, h).Warnings; len(warnings) != 1 || !strings.Contains(warnings[0], "on-demand prices: using the embedded ones") {
			t.Errorf("warnings %q", warnings)
		}
		if n := h.marketCalls()[memcloud.DescribeInstanceTypes]; n != 1 {
			t.Errorf("instance types were read %d times, want once in 12 hours", n)
		}
	})
}
