package catalog

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/memblob"
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
					{ID: "i-1", State: cloud.Running, ImageID: "ami-1", Partition: 3, Launched: start, Tags: map[string]string{
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
				{InstanceID: "i-1", State: "running", Intent: "in-1", NodePool: "default", Claim: "default-x", Launched: start, ImageID: "ami-1", Partition: 3},
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

// What others launched for the cluster, such as the nodes of a managed node group
// (A054), is nobody's orphan: it is not in the list.
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
