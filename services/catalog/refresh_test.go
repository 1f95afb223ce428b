package catalog

import (
	"context"
	"errors"
	"testing"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var due = event.Tick{Want: event.WantCatalogue, Due: start}

func TestRefreshSaysACatalogueOnce(t *testing.T) {
	b := newBench(t)
	for range 3 {
		if err := b.ask(t, "scheduler", due); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.said) != 1 {
		t.Fatalf("it was said %d times", len(b.said))
	}
	fact := last[event.CatalogRefreshed](t, b)
	ref, err := blob.Latest(t.Context(), b.blobs, catalog.Kind)
	if err != nil || ref != fact.Catalogue {
		t.Fatalf("the pointer names %v (%v), the fact %v", ref, err, fact.Catalogue)
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), b.blobs, ref)
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.ClusterFacts{
		Name: "demo", Endpoint: b.world.Cluster.Endpoint, CABundle: b.world.Cluster.CABundle,
		ServiceCIDR: b.world.Cluster.ServiceCIDR, Version: kubernetes, IPFamily: "ipv4",
	}
	if doc.Cluster != want || doc.Region != "us-west-2" || len(doc.Types) != fact.Types || fact.Types == 0 {
		t.Fatalf("cluster %+v in %s with %d types", doc.Cluster, doc.Region, len(doc.Types))
	}
	if shared, _ := catalog.Embedded("us-west-2"); shared.Cluster.Name != "" {
		t.Fatal("the embedded catalogue, which is shared, was written to")
	}
}

const kubernetes = "1.36"

func TestRefreshSaysAnUpgrade(t *testing.T) {
	b := newBench(t)
	if err := b.ask(t, "scheduler", due); err != nil {
		t.Fatal(err)
	}
	upgraded := b.world.Cluster
	upgraded.Version, upgraded.ServiceCIDR = "1.37", "fd00::/108"
	b.ec2.AddCluster(upgraded)
	if err := b.ask(t, "scheduler", due); err != nil {
		t.Fatal(err)
	}
	if len(b.said) != 2 {
		t.Fatalf("it was said %d times", len(b.said))
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), b.blobs, last[event.CatalogRefreshed](t, b).Catalogue)
	if err != nil || doc.Cluster.Version != "1.37" || doc.Cluster.IPFamily != "ipv6" {
		t.Fatalf("cluster %+v (%v)", doc.Cluster, err)
	}
}

func TestRefreshTakesOffersFromAPort(t *testing.T) {
	b := newBench(t)
	b.Offers = func(_ context.Context, region string) (catalog.Catalogue, error) { return memcloud.Small(region), nil }
	if err := b.ask(t, "scheduler", due); err != nil {
		t.Fatal(err)
	}
	if got, want := last[event.CatalogRefreshed](t, b).Types, len(memcloud.Small("us-west-2").Types); got != want {
		t.Fatalf("%d types, want %d", got, want)
	}
	b.Offers = func(context.Context, string) (catalog.Catalogue, error) {
		return catalog.Catalogue{}, fault.F("describing types", fault.Throttled, "rate")
	}
	if err := b.ask(t, "scheduler", due); !fault.Is(err, fault.Throttled) {
		t.Fatalf("got %v", err)
	}
}

// mute is a bus that takes nothing.
type mute struct{}

func (mute) Send(context.Context, ...queue.Outgoing) error { return errors.New("no") }

// The pointer must not move before the news is out: nobody would say it later.
func TestRefreshMovesThePointerLast(t *testing.T) {
	b := newBench(t)
	b.Bus = mute{}
	if err := b.ask(t, "scheduler", due); err == nil {
		t.Fatal("no error from a bus that takes nothing")
	}
	if _, err := blob.Latest(t.Context(), b.blobs, catalog.Kind); !fault.Is(err, fault.Missing) {
		t.Fatalf("the pointer was moved: %v", err)
	}
	b.Bus = b
	if err := b.ask(t, "scheduler", due); err != nil || len(b.said) != 1 {
		t.Fatalf("said %d (%v)", len(b.said), err)
	}
}

func TestRefreshNamesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(b *bench)
		kind  fault.Kind
	}{
		{"unknown region", func(b *bench) { b.Region = "mars-1" }, fault.Invalid},
		{"unknown cluster", func(b *bench) { b.Cluster = event.Cluster{Name: "other"} }, fault.Missing},
		{"denied", func(b *bench) { b.Clusters = denied{} }, fault.Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			tt.spoil(b)
			err := b.ask(t, "scheduler", due)
			if !fault.Is(err, tt.kind) || tt.kind != fault.Denied && fault.HintOf(err) == "" {
				t.Fatalf("got %v (kind %s, hint %q)", err, fault.KindOf(err), fault.HintOf(err))
			}
		})
	}
}

// denied is an account that allows nothing.
type denied struct{}

func (denied) DescribeCluster(context.Context, string) (cloud.ClusterInfo, error) {
	return cloud.ClusterInfo{}, fault.F("describing", fault.Denied, "AccessDenied")
}

func (denied) DescribeSubnets(context.Context, []cloud.Selector) ([]cloud.Subnet, error) {
	return nil, fault.F("describing", fault.Denied, "AccessDenied")
}

func (denied) DescribeSecurityGroups(context.Context, []cloud.Selector) ([]cloud.SecurityGroup, error) {
	return nil, fault.F("describing", fault.Denied, "AccessDenied")
}
