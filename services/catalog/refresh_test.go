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

var catalogueTick = event.Tick{Want: event.WantCatalogue, Due: start}

func TestRefreshPublishesOnce(t *testing.T) {
	h := newHarness(t)
	for range 3 {
		if err := h.handleFrom(t, "scheduler", catalogueTick); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.published) != 1 {
		t.Fatalf("published %d events", len(h.published))
	}
	fact := lastPublished[event.CatalogRefreshed](t, h)
	ref, err := blob.GetLatest(t.Context(), h.blobs, catalog.Kind)
	if err != nil || ref != fact.Catalogue {
		t.Fatalf("the pointer has %v (%v), the event %v", ref, err, fact.Catalogue)
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), h.blobs, ref)
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.ClusterFacts{
		Name: "demo", Endpoint: h.account.Cluster.Endpoint, CABundle: h.account.Cluster.CABundle,
		ServiceCIDR: h.account.Cluster.ServiceCIDR, Version: kubernetesVersion, IPFamily: "ipv4",
	}
	if doc.Cluster != want || doc.Region != "us-west-2" || len(doc.Types) != fact.Types || fact.Types == 0 {
		t.Fatalf("cluster %+v in %s with %d types", doc.Cluster, doc.Region, len(doc.Types))
	}
	if shared, _ := catalog.EmbeddedCatalogue("us-west-2"); shared.Cluster.Name != "" {
		t.Fatal("the shared embedded catalogue was changed")
	}
}

const kubernetesVersion = "1.36"

func TestRefreshPublishesUpgrade(t *testing.T) {
	h := newHarness(t)
	if err := h.handleFrom(t, "scheduler", catalogueTick); err != nil {
		t.Fatal(err)
	}
	upgraded := h.account.Cluster
	upgraded.Version, upgraded.ServiceCIDR = "1.37", "fd00::/108"
	h.ec2.AddCluster(upgraded)
	if err := h.handleFrom(t, "scheduler", catalogueTick); err != nil {
		t.Fatal(err)
	}
	if len(h.published) != 2 {
		t.Fatalf("published %d events", len(h.published))
	}
	doc, err := blob.Get[catalog.Catalogue](t.Context(), h.blobs, lastPublished[event.CatalogRefreshed](t, h).Catalogue)
	if err != nil || doc.Cluster.Version != "1.37" || doc.Cluster.IPFamily != "ipv6" {
		t.Fatalf("cluster %+v (%v)", doc.Cluster, err)
	}
}

func TestRefreshUsesStaticCatalogue(t *testing.T) {
	h := newHarness(t)
	h.StaticCatalogue = func(_ context.Context, region string) (catalog.Catalogue, error) { return memcloud.Small(region), nil }
	if err := h.handleFrom(t, "scheduler", catalogueTick); err != nil {
		t.Fatal(err)
	}
	if got, want := lastPublished[event.CatalogRefreshed](t, h).Types, len(memcloud.Small("us-west-2").Types); got != want {
		t.Fatalf("%d types, want %d", got, want)
	}
	h.StaticCatalogue = func(context.Context, string) (catalog.Catalogue, error) {
		return catalog.Catalogue{}, fault.F("describing types", fault.Throttled, "rate")
	}
	if err := h.handleFrom(t, "scheduler", catalogueTick); !fault.Is(err, fault.Throttled) {
		t.Fatalf("got %v", err)
	}
}

// failingBus is a bus that rejects every message.
type failingBus struct{}

func (failingBus) Send(context.Context, ...queue.Outgoing) error { return errors.New("no") }

// The pointer moves after the event is published. Otherwise a failure would lose the event.
func TestRefreshMovesThePointerLast(t *testing.T) {
	h := newHarness(t)
	h.Bus = failingBus{}
	if err := h.handleFrom(t, "scheduler", catalogueTick); err == nil {
		t.Fatal("no error from a failing bus")
	}
	if _, err := blob.GetLatest(t.Context(), h.blobs, catalog.Kind); !fault.Is(err, fault.Missing) {
		t.Fatalf("the pointer was moved: %v", err)
	}
	h.Bus = h
	if err := h.handleFrom(t, "scheduler", catalogueTick); err != nil || len(h.published) != 1 {
		t.Fatalf("published %d events (%v)", len(h.published), err)
	}
}

// A pointer to a document that does not exist, as a compromised service may write it, is replaced at the next tick.
func TestRefreshReplacesPointerToMissingDocument(t *testing.T) {
	h := newHarness(t)
	missing := event.Ref{Kind: catalog.Kind, Digest: event.DigestOf(nil), Size: 1}
	if err := blob.SetLatest(t.Context(), h.blobs, missing); err != nil {
		t.Fatal(err)
	}
	if err := h.handleFrom(t, "scheduler", catalogueTick); err != nil {
		t.Fatal(err)
	}
	current, err := blob.GetLatest(t.Context(), h.blobs, catalog.Kind)
	if err != nil || current == missing {
		t.Fatalf("the pointer names %v, %v", current, err)
	}
	if _, err := blob.Get[catalog.Catalogue](t.Context(), h.blobs, current); err != nil {
		t.Error(err)
	}
}

func TestRefreshErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(h *harness)
		kind   fault.Kind
	}{
		{"unknown region", func(h *harness) { h.Region = "mars-1" }, fault.Invalid},
		{"unknown cluster", func(h *harness) { h.Cluster = event.Cluster{Name: "other"} }, fault.Missing},
		{"denied", func(h *harness) { h.Clusters = deniedAWS{} }, fault.Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			tt.change(h)
			err := h.handleFrom(t, "scheduler", catalogueTick)
			if !fault.Is(err, tt.kind) || tt.kind != fault.Denied && fault.FindHint(err) == "" {
				t.Fatalf("got %v (kind %s, hint %q)", err, fault.KindOf(err), fault.FindHint(err))
			}
		})
	}
}

// deniedAWS denies every call.
type deniedAWS struct{}

func (deniedAWS) DescribeCluster(context.Context, string) (cloud.ClusterInfo, error) {
	return cloud.ClusterInfo{}, fault.F("describing", fault.Denied, "AccessDenied")
}

func (deniedAWS) DescribeSubnets(context.Context, []cloud.Selector) ([]cloud.Subnet, error) {
	return nil, fault.F("describing", fault.Denied, "AccessDenied")
}

func (deniedAWS) DescribeSecurityGroups(context.Context, []cloud.Selector) ([]cloud.SecurityGroup, error) {
	return nil, fault.F("describing", fault.Denied, "AccessDenied")
}
