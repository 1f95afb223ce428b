package interruption

import (
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// TestSpotInstanceLifecycle handles the events of the model of EC2: for each owned instance the
// service publishes its interruption and then that it is gone.
func TestSpotInstanceLifecycle(t *testing.T) {
	b := newFixture()
	var waiting []queue.Message
	ec2 := memcloud.New(memcloud.Options{
		Now: b.Now, Seed: 7, RateDivisor: -1, Faults: memcloud.Faults{Lag: 20 * time.Second},
		Events: func(raw []byte) { waiting = append(waiting, queue.Message{Body: slices.Clone(raw)}) },
	})
	b.EC2, b.Statuses = ec2, ec2
	b.Account, b.Region = ec2.Account(), ec2.Region()
	owned := launchInstances(t, ec2, "owned", map[string]string{"kubernetes.io/cluster/web": "owned", "karpenter.sh/nodepool": "default"})
	others := launchInstances(t, ec2, "others", map[string]string{"Name": "db"})
	kinds := map[fault.Kind]int{}
	// handleWaiting handles each message and keeps the messages that must be retried.
	handleWaiting := func() {
		var later []queue.Message
		for _, m := range waiting {
			err := b.Handle(t.Context(), m)
			if kinds[fault.KindOf(err)]++; fault.Is(err, fault.Retry) {
				later = append(later, m)
			} else if err != nil && !fault.Is(err, fault.Foreign, fault.Stale) {
				t.Fatalf("%s: %v", m.Body, err)
			}
		}
		waiting = later
	}
	for second := range 240 {
		switch second {
		case 30:
			for _, id := range append(slices.Clone(owned), others...) {
				ec2.Rebalance(id)
				ec2.Plan(id, "instance-retirement", b.now.Add(time.Hour))
				ec2.InterruptSpot(id)
			}
		default:
			ec2.Advance()
		}
		handleWaiting()
		b.now = b.now.Add(time.Second)
	}
	if len(waiting) > 0 {
		t.Fatalf("%d messages were not handled", len(waiting))
	}
	facts := map[string][]string{}
	for _, e := range b.published {
		name := string(e.Type)
		if e.Type == event.NodeNoticedType {
			n := decodeBody[event.NodeNoticed](t, e)
			name = string(n.Kind) + " " + n.Detail
		}
		if !slices.Contains(facts[e.Subject], name) {
			facts[e.Subject] = append(facts[e.Subject], name)
		}
	}
	for _, id := range owned {
		for _, want := range []string{
			"rebalance-recommendation ", "scheduled-change AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "spot-interruption terminate",
			"state-change shutting-down", "state-change terminated", string(event.InstanceGoneType),
		} {
			if !slices.Contains(facts["instance/"+id], want) {
				t.Errorf("%s: no %q in %q", id, want, facts["instance/"+id])
			}
		}
	}
	if len(facts) != len(owned) {
		t.Errorf("facts about %d instances, want %d", len(facts), len(owned))
	}
	if kinds[fault.Retry] == 0 || kinds[fault.Foreign] == 0 {
		t.Errorf("no message was retried, or none was foreign: %v", kinds)
	}
}

func launchInstances(t *testing.T, ec2 *memcloud.Cloud, name string, tags map[string]string) []string {
	t.Helper()
	world := ec2.Furnish(name)
	err := ec2.EnsureTemplate(t.Context(), cloud.Template{
		Name: name, ImageID: world.ImageAMD64.ID, InstanceProfile: world.Profile, SecurityGroups: []string{world.SecurityGroup.ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := ec2.CreateFleet(t.Context(), cloud.FleetRequest{
		Token: name, Count: 3, CapacityType: cloud.Spot, Strategy: "price-capacity-optimized",
		Configs: []cloud.FleetConfig{{Template: name, Overrides: []cloud.Override{
			{InstanceType: "m6i.large", SubnetID: world.Subnets[0].ID, Zone: world.Subnets[0].Zone},
		}}},
		TagSets: []cloud.TagSet{{Resource: "instance", Tags: tags}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, group := range out.Instances {
		ids = append(ids, group.IDs...)
	}
	if len(ids) != 3 {
		t.Fatalf("launched %d: %+v", len(ids), out.Errors)
	}
	return ids
}
