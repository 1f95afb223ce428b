package catalog

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/catalog/internal/cache"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestInventoryIsCompleteAndSorted(t *testing.T) {
	for name, body := range map[string]event.Body{
		"requested by the watcher": event.InventoryWanted{Asked: start},
		"tick":                     event.Tick{Want: event.WantInventory, Due: start},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.Instances = instancesFunc(func(f cloud.InstanceFilter) ([]cloud.Instance, error) {
				want := cloud.InstanceFilter{Tags: map[string]string{"kubernetes.io/cluster/demo": "owned", "karpenter.sh/nodepool": ""}}
				if diff := cmp.Diff(want, f); diff != "" {
					t.Errorf("filter (-want +got):\n%s", diff)
				}
				// The start time must not include the duration of the call.
				h.now = h.now.Add(40 * time.Second)
				return []cloud.Instance{
					{ID: "i-2", Type: "m6i.large", Zone: "us-west-2b", CapacityType: "spot", State: cloud.Terminated, Launched: start},
					{ID: "i-1", Type: "m6i.large", State: cloud.Running, ImageID: "ami-1", Partition: 3, Launched: start, SubnetID: "subnet-1",
						SecurityGroups: []string{"sg-2", "sg-1"}, Reservation: "cr-1", PlacementGroup: "near", PlacementGroupID: "pg-1", Tags: map[string]string{
							"joist.sh/intent": "in-1", "karpenter.sh/nodepool": "default", "karpenter.sh/nodeclaim": "default-x",
						}},
				}, nil
			})
			if err := h.handleFrom(t, "watcher", body); err != nil {
				t.Fatal(err)
			}
			fact := lastPublished[event.InstancesListed](t, h)
			if !fact.Started.Equal(start) || fact.Count != 2 {
				t.Fatalf("started %s with %d instances", fact.Started, fact.Count)
			}
			got, err := blob.Get[event.Inventory](t.Context(), h.blobs, fact.Inventory)
			if err != nil {
				t.Fatal(err)
			}
			want := event.Inventory{Started: start, Instances: []event.Listed{
				{InstanceID: "i-1", State: "running", Intent: "in-1", NodePool: "default", Claim: "default-x", Launched: start, ImageID: "ami-1", Partition: 3,
					SubnetID: "subnet-1", SecurityGroups: []string{"sg-1", "sg-2"}, Reservation: "cr-1", PlacementGroup: "near", PlacementGroupID: "pg-1",
					Offering: event.Offering{InstanceType: "m6i.large"}},
				{InstanceID: "i-2", State: "terminated", Launched: start, Offering: event.Offering{InstanceType: "m6i.large", Zone: "us-west-2b", CapacityType: "spot"}},
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("inventory (-want +got):\n%s", diff)
			}
		})
	}
}

// An empty inventory is published too.
func TestInventoryMayBeEmpty(t *testing.T) {
	h := newHarness(t)
	if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: start}); err != nil {
		t.Fatal(err)
	}
	if fact := lastPublished[event.InstancesListed](t, h); fact.Count != 0 {
		t.Fatalf("count %d", fact.Count)
	}
}

func TestInventoryIsNeverPartial(t *testing.T) {
	h := newHarness(t)
	partial := fault.E("describing page 2", fault.Throttled, errors.New("rate"))
	h.Instances = instancesFunc(func(cloud.InstanceFilter) ([]cloud.Instance, error) { return []cloud.Instance{{ID: "i-1"}}, partial })
	if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: start}); !errors.Is(err, partial) {
		t.Fatalf("got %v", err)
	}
	h.Instances = h.ec2
	h.blobs.SetFaults(memblob.Faults{FailPut: 1})
	if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: start}); !fault.Is(err, fault.Retry) {
		t.Fatalf("got %v", err)
	}
	if len(h.published) > 0 {
		t.Fatalf("published %d events, want none", len(h.published))
	}
}

// Instances that Joist did not launch, such as instances of managed node groups, are not in
// the inventory.
func TestInventorySkipsManagedNodeGroups(t *testing.T) {
	h := newHarness(t)
	template := cloud.Template{Name: "nodes", ImageID: h.account.ImageAMD64.ID}
	if err := h.ec2.EnsureTemplate(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	subnet := h.account.Subnets[0]
	launch := func(token string, tags map[string]string) string {
		t.Helper()
		out, err := h.ec2.CreateFleet(t.Context(), cloud.FleetRequest{
			Token: token, Count: 1, CapacityType: cloud.OnDemand, Strategy: "lowest-price",
			Configs: []cloud.FleetConfig{{Template: "nodes", Overrides: []cloud.Override{{InstanceType: "m6i.large", SubnetID: subnet.ID, Zone: subnet.Zone}}}},
			TagSets: []cloud.TagSet{{Resource: "instance", Tags: tags}},
		})
		if err != nil || len(out.Instances) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		return out.Instances[0].IDs[0]
	}
	launch("a", map[string]string{"kubernetes.io/cluster/demo": "owned", "eks:nodegroup-name": "system"})
	launch("b", map[string]string{"kubernetes.io/cluster/other": "owned", "karpenter.sh/nodepool": "default"})
	ours := launch("c", map[string]string{"kubernetes.io/cluster/demo": "owned", "karpenter.sh/nodepool": "default", "joist.sh/intent": "in-1"})
	h.now = h.now.Add(time.Minute)
	if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: h.now}); err != nil {
		t.Fatal(err)
	}
	got, err := blob.Get[event.Inventory](t.Context(), h.blobs, lastPublished[event.InstancesListed](t, h).Inventory)
	if err != nil || len(got.Instances) != 1 || got.Instances[0].InstanceID != ours || got.Instances[0].Intent != "in-1" {
		t.Fatalf("listed %+v (%v), want %s only", got.Instances, err, ours)
	}
}

// As in Karpenter, an offering is withdrawn with its type, its capacity type or its zone.
func TestInventoryMarksWithdrawnOfferings(t *testing.T) {
	offering := func(zone string) catalog.Offering {
		return catalog.Offering{Zone: zone, CapacityType: cloud.OnDemand, PricePerHour: 1, Available: true}
	}
	doc := catalog.Catalogue{Types: []catalog.InstanceType{
		{Name: "both", SupportedUsage: []string{"on-demand", "spot"}, Offerings: []catalog.Offering{offering("a")}},
		{Name: "ondemand", SupportedUsage: []string{"on-demand"}, Offerings: []catalog.Offering{offering("a"), offering("b")}},
		{Name: "block"},
	}}
	for _, tt := range []struct {
		instance cloud.Instance
		want     bool
	}{
		{cloud.Instance{Type: "both", Zone: "a", CapacityType: "spot"}, false},
		{cloud.Instance{Type: "both", Zone: "b", CapacityType: "spot"}, false}, // Karpenter checks whether the zone has an offering of any type.
		{cloud.Instance{Type: "both", Zone: "c", CapacityType: "spot"}, true},
		{cloud.Instance{Type: "ondemand", Zone: "a", CapacityType: "on-demand"}, false},
		{cloud.Instance{Type: "ondemand", Zone: "a", CapacityType: "spot"}, true},
		{cloud.Instance{Type: "ondemand", Zone: "a", CapacityType: "reserved"}, false},
		{cloud.Instance{Type: "block", Zone: "a", CapacityType: "reserved"}, false},
		{cloud.Instance{Type: "block", Zone: "a", CapacityType: "on-demand"}, true},
		{cloud.Instance{Type: "block", Zone: "c", CapacityType: "reserved"}, true},
		{cloud.Instance{Type: "none", Zone: "a", CapacityType: "on-demand"}, true},
		{cloud.Instance{Type: "both"}, false}, // EC2 returns few fields of terminated instances.
	} {
		h := newHarness(t)
		tt.instance.ID = "i-1"
		h.Instances = instancesFunc(func(cloud.InstanceFilter) ([]cloud.Instance, error) { return []cloud.Instance{tt.instance}, nil })
		h.StaticCatalogue = func(context.Context, string) (catalog.Catalogue, error) { return doc, nil }
		if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: h.now}); err != nil {
			t.Fatal(err)
		}
		got, err := blob.Get[event.Inventory](t.Context(), h.blobs, lastPublished[event.InstancesListed](t, h).Inventory)
		if err != nil || len(got.Instances) != 1 || got.Instances[0].Withdrawn != tt.want {
			t.Errorf("%+v: %+v (%v), want withdrawn %t", tt.instance, got.Instances, err, tt.want)
		}
	}
}

// The inventory marks instances whose offering the catalogue lacks. Without a readable
// catalogue it marks none and is published nevertheless.
func TestInventoryCachesOfferings(t *testing.T) {
	h := newHarness(t)
	running := instancesFunc(func(cloud.InstanceFilter) ([]cloud.Instance, error) {
		return []cloud.Instance{{ID: "i-1", Type: "m6i.large"}, {ID: "i-2", Type: "m0.large"}}, nil
	})
	h.Instances, h.OfferingCache = running, cache.NewOfferings(h.Now)
	doc, read := catalog.Catalogue{Types: []catalog.InstanceType{{Name: "m6i.large"}}}, 0
	var failing error
	h.StaticCatalogue = func(context.Context, string) (catalog.Catalogue, error) {
		read++
		return doc, failing
	}
	listed := func() map[string]bool {
		t.Helper()
		h.now = h.now.Add(time.Minute)
		if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: h.now}); err != nil {
			t.Fatal(err)
		}
		got, err := blob.Get[event.Inventory](t.Context(), h.blobs, lastPublished[event.InstancesListed](t, h).Inventory)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, i := range got.Instances {
			out[i.InstanceType] = i.Withdrawn
		}
		return out
	}
	want := map[string]bool{"m6i.large": false, "m0.large": true}
	if diff := cmp.Diff(want, listed()); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	// A new offering is found immediately and then cached for half an hour.
	doc.Types = append(doc.Types, catalog.InstanceType{Name: "m0.large"})
	want["m0.large"] = false
	if diff := cmp.Diff(want, listed()); diff != "" || read != 2 {
		t.Errorf("after reading the catalogue %d times (-want +got):\n%s", read, diff)
	}
	doc.Types = doc.Types[:1]
	for range 29 {
		if diff := cmp.Diff(want, listed()); diff != "" || read != 2 {
			t.Fatalf("after reading the catalogue %d times (-want +got):\n%s", read, diff)
		}
	}
	want["m0.large"] = true
	if diff := cmp.Diff(want, listed()); diff != "" {
		t.Errorf("half an hour later (-want +got):\n%s", diff)
	}
	want["m0.large"] = false
	for name, change := range map[string]func(){
		"the catalogue is empty":       func() { doc.Types = nil },
		"the catalogue cannot be read": func() { failing = errors.New("no answer") },
	} {
		change()
		if diff := cmp.Diff(want, listed()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// With Market set, the published catalogue is used.
	h.Market, doc.Types = h.ec2, []catalog.InstanceType{{Name: "m0.large"}}
	ref, err := blob.Put(t.Context(), h.blobs, h.now, catalog.Kind, doc)
	if err == nil {
		err = blob.SetLatest(t.Context(), h.blobs, ref)
	}
	if diff := cmp.Diff(map[string]bool{"m6i.large": true, "m0.large": false}, listed()); diff != "" || err != nil {
		t.Errorf("with the published catalogue, %v (-want +got):\n%s", err, diff)
	}
}

// recentMarket also has a type and a local zone that the embedded catalogue lacks.
type recentMarket struct{ cloud.Market }

func (m recentMarket) InstanceTypes(ctx context.Context) ([]cloud.InstanceType, error) {
	types, err := m.Market.InstanceTypes(ctx)
	if at := slices.IndexFunc(types, func(t cloud.InstanceType) bool { return t.Name == "m6i.large" }); at >= 0 {
		recent := types[at]
		recent.Name = "m8i.large"
		types = append(types, recent)
	}
	return types, err
}

func (m recentMarket) TypeOfferings(ctx context.Context) ([]cloud.TypeOffering, error) {
	offerings, err := m.Market.TypeOfferings(ctx)
	if err != nil {
		return nil, err
	}
	return append(offerings, cloud.TypeOffering{Type: "m8i.large", Zone: "us-west-2a"}, cloud.TypeOffering{Type: "m6i.large", Zone: "us-west-2-lax-1a"}), nil
}

// A catalogue whose types or zones are embedded ones says nothing about running instances: their nodes must not be
// replaced because EC2 refuses a call.
func TestEmbeddedCatalogueWithdrawsNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		deny []memcloud.Action
		want int
	}{
		{"all was read: a type that EC2 does not offer", nil, 1},
		{"instance types are denied", []memcloud.Action{memcloud.DescribeInstanceTypes}, 0},
		{"offerings are denied", []memcloud.Action{memcloud.DescribeInstanceTypeOfferings}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newMarketHarness(t)
			h.Market = recentMarket{h.ec2}
			h.ec2.Deny(tt.deny...)
			h.Instances = instancesFunc(func(cloud.InstanceFilter) ([]cloud.Instance, error) {
				return []cloud.Instance{
					{ID: "i-1", Type: "m8i.large", Zone: "us-west-2a", CapacityType: cloud.OnDemand, State: cloud.Running},
					{ID: "i-2", Type: "m6i.large", Zone: "us-west-2-lax-1a", CapacityType: cloud.OnDemand, State: cloud.Running},
					{ID: "i-3", Type: "m9i.large", Zone: "us-west-2a", CapacityType: cloud.OnDemand, State: cloud.Running},
				}, nil
			})
			h.refreshMarket(t)
			if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: h.now}); err != nil {
				t.Fatal(err)
			}
			got, err := blob.Get[event.Inventory](t.Context(), h.blobs, lastPublished[event.InstancesListed](t, h).Inventory)
			if err != nil {
				t.Fatal(err)
			}
			withdrawn := 0
			for _, i := range got.Instances {
				if i.Withdrawn {
					withdrawn++
				}
			}
			if withdrawn != tt.want {
				t.Errorf("%d instances have withdrawn offerings, want %d: %+v", withdrawn, tt.want, got.Instances)
			}
		})
	}
}
