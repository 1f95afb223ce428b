package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/catalog/internal/recall"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestListIsWholeAndSorted(t *testing.T) {
	for name, body := range map[string]event.Body{
		"asked by the watcher":   event.InventoryWanted{Asked: start},
		"asked by the scheduler": event.Tick{Want: event.WantInventory, Due: start},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Instances = fleet(func(f cloud.InstanceFilter) ([]cloud.Instance, error) {
				want := cloud.InstanceFilter{Tags: map[string]string{"kubernetes.io/cluster/demo": "owned", "karpenter.sh/nodepool": ""}}
				if diff := cmp.Diff(want, f); diff != "" {
					t.Errorf("filter (-want +got):\n%s", diff)
				}
				// The call takes time, and the list must not claim it.
				b.now = b.now.Add(40 * time.Second)
				return []cloud.Instance{
					{ID: "i-2", Type: "m6i.large", Zone: "us-west-2b", CapacityType: "spot", State: cloud.Terminated, Launched: start},
					{ID: "i-1", Type: "m6i.large", State: cloud.Running, ImageID: "ami-1", Partition: 3, Launched: start, SubnetID: "subnet-1",
						SecurityGroups: []string{"sg-2", "sg-1"}, Reservation: "cr-1", PlacementGroup: "near", PlacementGroupID: "pg-1", Tags: map[string]string{
							"joist.sh/intent": "in-1", "karpenter.sh/nodepool": "default", "karpenter.sh/nodeclaim": "default-x",
						}},
				}, nil
			})
			if err := b.ask(t, "watcher", body); err != nil {
				t.Fatal(err)
			}
			fact := last[event.InstancesListed](t, b)
			if !fact.Started.Equal(start) || fact.Count != 2 {
				t.Fatalf("started %s with %d instances", fact.Started, fact.Count)
			}
			got, err := blob.Get[event.Inventory](t.Context(), b.blobs, fact.Inventory)
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

// An empty list is a statement too: it must be said, and be a list.
func TestListSaysThatThereIsNothing(t *testing.T) {
	b := newBench(t)
	if err := b.ask(t, "watcher", event.InventoryWanted{Asked: start}); err != nil {
		t.Fatal(err)
	}
	if fact := last[event.InstancesListed](t, b); fact.Count != 0 {
		t.Fatalf("count %d", fact.Count)
	}
}

func TestListIsNeverPartial(t *testing.T) {
	b := newBench(t)
	half := fault.E("describing page 2", fault.Throttled, errors.New("rate"))
	b.Instances = fleet(func(cloud.InstanceFilter) ([]cloud.Instance, error) { return []cloud.Instance{{ID: "i-1"}}, half })
	if err := b.ask(t, "watcher", event.InventoryWanted{Asked: start}); !errors.Is(err, half) {
		t.Fatalf("got %v", err)
	}
	b.Instances = b.ec2
	b.blobs.SetFaults(memblob.Faults{FailPut: 1})
	if err := b.ask(t, "watcher", event.InventoryWanted{Asked: start}); !fault.Is(err, fault.Retry) {
		t.Fatalf("got %v", err)
	}
	if len(b.said) > 0 {
		t.Fatalf("it said %d facts", len(b.said))
	}
}

// What others launched for the cluster, such as the nodes of a managed node group,
// is nobody's orphan: it is not in the list.
func TestListLeavesManagedNodeGroupsOut(t *testing.T) {
	b := newBench(t)
	template := cloud.Template{Name: "nodes", ImageID: b.world.ImageAMD64.ID}
	if err := b.ec2.EnsureTemplate(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	subnet := b.world.Subnets[0]
	launch := func(token string, tags map[string]string) string {
		t.Helper()
		out, err := b.ec2.CreateFleet(t.Context(), cloud.FleetRequest{
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
	b.now = b.now.Add(time.Minute)
	if err := b.ask(t, "watcher", event.InventoryWanted{Asked: b.now}); err != nil {
		t.Fatal(err)
	}
	got, err := blob.Get[event.Inventory](t.Context(), b.blobs, last[event.InstancesListed](t, b).Inventory)
	if err != nil || len(got.Instances) != 1 || got.Instances[0].InstanceID != ours || got.Instances[0].Intent != "in-1" {
		t.Fatalf("listed %+v (%v), want %s alone", got.Instances, err, ours)
	}
}

// An instance counts as withdrawn with its type, its capacity type or its zone, as with Karpenter.
func TestListTellsOfWithdrawnOfferings(t *testing.T) {
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
		{cloud.Instance{Type: "both", Zone: "b", CapacityType: "spot"}, false}, // Karpenter asks whether the zone sells anything.
		{cloud.Instance{Type: "both", Zone: "c", CapacityType: "spot"}, true},
		{cloud.Instance{Type: "ondemand", Zone: "a", CapacityType: "on-demand"}, false},
		{cloud.Instance{Type: "ondemand", Zone: "a", CapacityType: "spot"}, true},
		{cloud.Instance{Type: "ondemand", Zone: "a", CapacityType: "reserved"}, false},
		{cloud.Instance{Type: "block", Zone: "a", CapacityType: "reserved"}, false},
		{cloud.Instance{Type: "block", Zone: "a", CapacityType: "on-demand"}, true},
		{cloud.Instance{Type: "block", Zone: "c", CapacityType: "reserved"}, true},
		{cloud.Instance{Type: "none", Zone: "a", CapacityType: "on-demand"}, true},
		{cloud.Instance{Type: "both"}, false}, // EC2 says little of what has ended.
	} {
		b := newBench(t)
		tt.instance.ID = "i-1"
		b.Instances = fleet(func(cloud.InstanceFilter) ([]cloud.Instance, error) { return []cloud.Instance{tt.instance}, nil })
		b.Offers = func(context.Context, string) (catalog.Catalogue, error) { return doc, nil }
		if err := b.ask(t, "watcher", event.InventoryWanted{Asked: b.now}); err != nil {
			t.Fatal(err)
		}
		got, err := blob.Get[event.Inventory](t.Context(), b.blobs, last[event.InstancesListed](t, b).Inventory)
		if err != nil || len(got.Instances) != 1 || got.Instances[0].Withdrawn != tt.want {
			t.Errorf("%+v: %+v (%v), want withdrawn %t", tt.instance, got.Instances, err, tt.want)
		}
	}
}

// The types of instances that the catalogue does not have are told of, of no
// instance where there is no catalogue, and without failing the list.
func TestListTellsWhatIsSoldNoMore(t *testing.T) {
	b := newBench(t)
	running := fleet(func(cloud.InstanceFilter) ([]cloud.Instance, error) {
		return []cloud.Instance{{ID: "i-1", Type: "m6i.large"}, {ID: "i-2", Type: "m0.large"}}, nil
	})
	b.Instances, b.Sold = running, recall.NewTypes(b.Now)
	doc, read := catalog.Catalogue{Types: []catalog.InstanceType{{Name: "m6i.large"}}}, 0
	var failing error
	b.Offers = func(context.Context, string) (catalog.Catalogue, error) {
		read++
		return doc, failing
	}
	listed := func() map[string]bool {
		t.Helper()
		b.now = b.now.Add(time.Minute)
		if err := b.ask(t, "watcher", event.InventoryWanted{Asked: b.now}); err != nil {
			t.Fatal(err)
		}
		got, err := blob.Get[event.Inventory](t.Context(), b.blobs, last[event.InstancesListed](t, b).Inventory)
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
	// That it is sold again is seen at once, and then believed for half an hour.
	doc.Types = append(doc.Types, catalog.InstanceType{Name: "m0.large"})
	want["m0.large"] = false
	if diff := cmp.Diff(want, listed()); diff != "" || read != 2 {
		t.Errorf("after %d readings (-want +got):\n%s", read, diff)
	}
	doc.Types = doc.Types[:1]
	for range 29 {
		if diff := cmp.Diff(want, listed()); diff != "" || read != 2 {
			t.Fatalf("after %d readings (-want +got):\n%s", read, diff)
		}
	}
	want["m0.large"] = true
	if diff := cmp.Diff(want, listed()); diff != "" {
		t.Errorf("half an hour later (-want +got):\n%s", diff)
	}
	want["m0.large"] = false
	for name, change := range map[string]func(){
		"nothing is sold at all": func() { doc.Types = nil },
		"it cannot be read":      func() { failing = errors.New("no answer") },
	} {
		change()
		if diff := cmp.Diff(want, listed()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// Where AWS is asked, it is the catalogue that is current which tells.
	b.Market, doc.Types = b.ec2, []catalog.InstanceType{{Name: "m0.large"}}
	ref, err := blob.Put(t.Context(), b.blobs, b.now, catalog.Kind, doc)
	if err == nil {
		err = blob.Point(t.Context(), b.blobs, ref)
	}
	if diff := cmp.Diff(map[string]bool{"m6i.large": true, "m0.large": false}, listed()); diff != "" || err != nil {
		t.Errorf("by the catalogue, %v (-want +got):\n%s", err, diff)
	}
}
